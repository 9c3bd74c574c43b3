"""Files under one ref of a repository, next to its branches; each change is atomic."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from septet.git.engine.engine import Git

_NOTHING: Final = ""
"""The old value for `git update-ref` that means: the ref must not exist."""


@dataclass(frozen=True, slots=True)
class StoreContents:
    """The contents of the ref when it was read."""

    commit: str
    shas: Mapping[str, str]
    files: Mapping[str, bytes]
    """Content by file name."""


@dataclass(frozen=True, slots=True)
class RefStore:
    """A ref whose commit's tree holds files. A write names the contents that it replaces (compare and swap)."""

    git: Git
    """The repository, with an identity in its environment."""
    ref: str

    def read(self) -> StoreContents:
        """Return the contents of the ref; empty if there is no such ref.

        Raises:
            GitError: The repository cannot be read.
        """
        commit = self.git.try_run("rev-parse", "--verify", "--quiet", self.ref).stdout.decode("ascii").strip()
        if not commit:
            return StoreContents(_NOTHING, MappingProxyType({}), MappingProxyType({}))
        entries = [entry.split("\t", 1) for entry in self.git.text("ls-tree", "-z", commit).split("\0") if entry]
        shas = {name: facts.split(" ")[2] for facts, name in entries}
        output = self.git.run("cat-file", "--batch", stdin="".join(f"{sha}\n" for sha in shas.values()).encode())
        files = dict(zip(shas, _contents(output), strict=True))
        return StoreContents(commit, MappingProxyType(shas), MappingProxyType(files))

    def put(self, contents: StoreContents, name: str, content: bytes) -> bool:
        """Add or replace one file; return false if the ref no longer has `contents`.

        Raises:
            GitError: The repository cannot be written.
        """
        sha = self.git.run("hash-object", "-w", "--stdin", stdin=content).decode("ascii").strip()
        listing = "".join(f"100644 blob {each}\t{file}\0" for file, each in {**contents.shas, name: sha}.items())
        tree = self.git.run("mktree", "-z", stdin=listing.encode()).decode("ascii").strip()
        parents = () if contents.commit == _NOTHING else ("-p", contents.commit)
        commit = self.git.text("commit-tree", tree, *parents, "-m", name)
        return self.git.try_run("update-ref", self.ref, commit, contents.commit).exit_code == 0


def _contents(output: bytes) -> list[bytes]:
    """Return the blobs in the output of `git cat-file --batch`."""
    blobs, start = [], 0
    while start < len(output):
        content = output.index(b"\n", start) + 1
        end = content + int(output[start:content].rpartition(b" ")[2])
        blobs.append(output[content:end])
        start = end + 1
    return blobs
