"""The records of the `local` forge: JSON files under one ref of a repository; the ref changes atomically."""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from septet.contracts.wire import Wire
from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.values import Comment, Issue, PullRequest
from septet.git.engine.engine import Git

_NOTHING: Final = ""
"""The old value that makes `git update-ref` require that the ref does not exist."""


@dataclass(frozen=True, slots=True)
class StoreContents:
    """The contents of a `RefStore`, as they were read: the commit of its ref, and the files."""

    commit: str
    shas: Mapping[str, str]
    files: Mapping[str, bytes]


_read_last: Final = dict[Path, StoreContents]()
"""The contents that this process read last from each repository, used again while the ref has the same commit."""


@dataclass(frozen=True, slots=True)
class RefStore:
    """Files under one ref. A write succeeds only if the ref still has the contents that were read."""

    git: Git
    """The repository, with an identity in its environment."""
    ref: str

    def read(self) -> StoreContents:
        """Return the present contents; empty if the ref does not exist.

        Raises:
            GitError: The repository cannot be read.
        """
        commit = self.git.try_run("rev-parse", "--verify", "--quiet", self.ref).stdout.decode("ascii").strip()
        if not commit:
            return StoreContents(_NOTHING, MappingProxyType({}), MappingProxyType({}))
        if (last := _read_last.get(self.git.git_dir)) is not None and last.commit == commit:
            return last
        entries = [entry.split("\t", 1) for entry in self.git.text("ls-tree", "-z", commit).split("\0") if entry]
        shas = {name: facts.split(" ")[2] for facts, name in entries}
        output = self.git.run("cat-file", "--batch", stdin="".join(f"{sha}\n" for sha in shas.values()).encode())
        files = dict(zip(shas, _contents(output), strict=True))
        contents = StoreContents(commit, MappingProxyType(shas), MappingProxyType(files))
        _read_last[self.git.git_dir] = contents
        return contents

    def put(self, contents: StoreContents, name: str, content: bytes) -> bool:
        """Add or replace one file; return false if the ref has changed since `contents` were read.

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
    """Return the contents of the blobs in the output of `git cat-file --batch`."""
    blobs, start = [], 0
    while start < len(output):
        content = output.index(b"\n", start) + 1
        end = content + int(output[start:content].rpartition(b" ")[2])
        blobs.append(output[content:end])
        start = end + 1
    return blobs


REF: Final = "refs/septet/forge"
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "Septet",
    "GIT_AUTHOR_EMAIL": "septet@localhost",
    "GIT_COMMITTER_NAME": "Septet",
    "GIT_COMMITTER_EMAIL": "septet@localhost",
}

R = TypeVar("R", bound="LocalRecord")
T = TypeVar("T")


class LocalRecord(Wire):
    """A record with its number."""

    number: int


class LocalComment(Wire):
    """A comment in the record of an issue."""

    author: str
    body: str
    created_at: str = ""


class LocalIssue(LocalRecord):
    """The record of an issue and its comments."""

    title: str
    body: str
    labels: tuple[str, ...] = ()
    state: Literal["open", "closed"] = "open"
    comments: tuple[LocalComment, ...] = ()


class LocalPull(LocalRecord):
    """The record of a pull request."""

    head: str
    base: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    state: Literal["open", "closed", "merged"] = "open"


@dataclass(frozen=True, slots=True)
class LocalRecords:
    """The records of a repository on disk: of a bare repository, or of a person's checkout."""

    path: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment variables for git."""
    name: str = "local"
    tries: int = 100
    """How often a write is tried while other writers are faster."""

    def records_of(self, contents: StoreContents, kind: str, form: type[R], naming: str = "") -> list[R]:
        """Return the records of a kind, sorted by number; with `naming`, only those whose text contains it."""
        mark = to_json(naming).strip(b'"')
        texts = (text for name, text in contents.files.items() if name.startswith(kind) and mark in text)
        try:
            records = [form.model_validate_json(text) for text in texts]
        except ValidationError as error:
            message = f"{REF} of {self.path} does not hold what this forge has written."
            raise ForgeError(message, remedy=f"Look at it with `git show {REF}`.") from error
        return sorted(records, key=lambda record: record.number)

    def put(self, contents: StoreContents, kind: str, record: LocalRecord) -> bool:
        """Add or replace a record; return false if the ref has changed since `contents` were read."""
        content = record.model_dump_json(indent=1).encode()
        return self.store.put(contents, f"{kind}-{record.number}.json", content)

    def until_done(self, change: Callable[[StoreContents], T | None]) -> T:
        """Call `change` until it returns a result; `change` returns `None` if another writer was faster."""
        for _ in range(self.tries):
            if (result := change(self.store.read())) is not None:
                return result
            time.sleep(random.uniform(0, 0.05))  # noqa: S311 -- a pause for other writers, no secret
        raise ForgeUnavailableError(f"Other processes keep writing to {REF} of {self.path}.")

    def issue_record(self, contents: StoreContents, number: int) -> LocalIssue:
        """Return the record of an issue.

        Raises:
            NotFoundError: The repository has no issue of this number.
        """
        for record in self.records_of(contents, f"issue-{number}.json", LocalIssue):
            return record
        remedy = "List its issues with `septet issue list`, or add one with `septet issue add`."
        raise NotFoundError(f"{self.path} has no issue {number}.", remedy=remedy)

    def pull_record(self, contents: StoreContents, number: int) -> LocalPull:
        """Return the record of a pull request.

        Raises:
            NotFoundError: The repository has no pull request of this number.
        """
        for record in self.records_of(contents, f"pull-{number}.json", LocalPull):
            return record
        raise NotFoundError(f"{self.path} has no pull request {number}.", remedy="List them: septet pr list --all")

    def issue_from(self, record: LocalIssue) -> Issue:
        """Return the issue of a record."""
        return Issue(
            number=record.number,
            title=record.title,
            body=record.body,
            url=f"{self.path.as_uri()}/issue/{record.number}",
            state=record.state,
            labels=record.labels,
            comments=tuple(Comment(each.author, each.body, each.created_at) for each in record.comments),
        )

    def pull_from(self, record: LocalPull, head_sha: str | None = None) -> PullRequest:
        """Return the pull request of a record; if `head_sha` is `None`, git is called for the branch's commit."""
        return PullRequest(
            number=record.number,
            url=f"{self.path.as_uri()}/pull/{record.number}",
            head=record.head,
            base=record.base,
            head_sha=self.sha_of(record.head) if head_sha is None else head_sha,
            state=record.state,
            body=record.body,
        )

    def sha_of(self, branch: str) -> str:
        """Return the commit of a branch; empty if the branch does not exist."""
        completed = self.git.try_run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        return completed.stdout.decode("ascii").strip()

    @property
    def store(self) -> RefStore:
        """The ref with the records."""
        return RefStore(self.git, REF)

    @property
    def git(self) -> Git:
        """Git for the repository at `path`; its folder is `path/.git`, `path` itself or `path.git`."""
        for folder in (self.path / ".git", self.path, self.path.with_name(f"{self.path.name}.git")):
            if folder.is_file() or (folder / "objects").is_dir():
                return Git(folder, env={**self.env, **_IDENTITY})
        raise NotFoundError(f"{self.path} is not a git repository.", remedy="Give the path of a repository.")


def next_number(contents: StoreContents, kind: str) -> int:
    """Return the number for a new record of a kind."""
    names = (re.fullmatch(rf"{kind}-(\d+)\.json", name) for name in contents.files)
    return max((int(name[1]) for name in names if name), default=0) + 1
