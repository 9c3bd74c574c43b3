"""Find out by a recorded digest whether a guest has changed a worktree's repositories.

A digest needs a few `lstat` calls and small reads for each repository, and starts no process.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from septet.contracts.wire import Wire
from septet.errors import NotFoundError
from septet.git.engine.engine import Git
from septet.git.engine.place import RECORDS, Place
from septet.git.snapshots.config_rules import WHOLE_TREE, named_paths
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, first_and_last, vault_at
from septet.git.worktree.dot_git import read_file
from septet.system.durable import read_model, write_durably

FILE: Final = "dot-git.json"
_NAMES: Final = (
    "", "hooks", "info", "modules", "remotes", "branches", "worktrees", "config", "config.worktree", "commondir",
    "info/attributes", "info/exclude",
)  # fmt: skip
_READ: Final = ("config", "config.worktree", "commondir", "info/attributes", "hooks", "remotes", "branches")
_GITLINK: Final = b"\0\0\xe0\0"
_MODE_AT: Final = 24
_FLAGS_AT: Final = 60
_NAME_AT: Final = 62
_EXTENDED: Final = 0x40
_HEADER_BYTES: Final = 12
_LIMIT_BYTES: Final = 1 << 20
_MOST: Final = 10_000


class OwnRepository(Wire):
    """What is recorded about a workspace's repositories, in the vault, where no guest can write."""

    baseline: str
    """The name of the snapshot before the first agent."""
    depends_on: tuple[str, ...] = ()
    """The worktree's paths on which the repositories' settings depend."""
    stamp: str = ""
    """The digest after Septet's last change; empty if unknown."""


def note_baseline(place: Place, snapshot: Snapshot) -> None:
    """Record the snapshot from before the first agent.

    Raises:
        SnapshotError, GitError: The snapshot cannot be read.
    """
    vault = vault_at(place)
    config = vault.try_run("cat-file", "blob", f"{snapshot.commit}:state/config").stdout
    named = named_paths(vault, config, os.fsencode(place.worktree))
    depends_on = tuple(sorted(map(os.fsdecode, named)))
    record = OwnRepository(baseline=snapshot.name, depends_on=depends_on)
    _write(place, record.model_copy(update={"stamp": _stamp(place, depends_on)}))


def find_baseline(vault: Git, order_id: str) -> Snapshot | None:
    """Return a work order's snapshot from before the first agent, or else the oldest; `None` without snapshots."""
    record = read_model(vault.git_dir / RECORDS / order_id / FILE, OwnRepository)
    if record is not None:
        with suppress(NotFoundError):
            return find(vault, record.baseline)
    known = first_and_last(vault, order_id)
    return known[0] if known else None


def is_own(place: Place) -> bool:
    """Return whether a worktree's repositories are as Septet left them."""
    record = read_model(place.records / FILE, OwnRepository)
    return record is not None and record.stamp != "" and record.stamp == _stamp(place, record.depends_on)


def note_own(place: Place) -> None:
    """Record the digest of a worktree's repositories; call this when only Septet's settings are left there."""
    record = read_model(place.records / FILE, OwnRepository)
    if record is None and (baseline := find_baseline(vault_at(place), place.order_id)) is not None:
        record = OwnRepository(baseline=baseline.name)
    if record is not None:
        _write(place, record.model_copy(update={"stamp": _stamp(place, record.depends_on)}))


def _write(place: Place, record: OwnRepository) -> None:
    write_durably(place.records / FILE, record.model_dump_json().encode())


def _stamp(place: Place, depends_on: Collection[str]) -> str:
    """Return the digest of a worktree's repositories and of the paths `depends_on`.

    Empty if `depends_on` names the whole worktree, too many files would be read, or a folder cannot be listed.
    """
    root = os.fspath(place.worktree)
    look = _Look(root)
    if WHOLE_TREE.decode() in depends_on:
        return ""
    try:
        look.repository(root, f"{root}/.git")
        for path in depends_on:
            look.tree(f"{root}/{path}")
    except OSError:  # a folder that cannot be listed
        return ""
    return look.digest.hexdigest() if look.budget else ""


@dataclass(slots=True)
class _Look:
    """Computes the digest of a worktree's repositories; for speed, paths are plain strings."""

    root: str
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    budget: int = _MOST
    """How many files and folders may still be read."""
    looks: set[str] = field(default_factory=set)

    def repository(self, tree: str, git_dir: str) -> None:
        """Add a repository and its submodules' repositories to the digest."""
        if git_dir in self.looks or not self.budget:
            return
        self.looks.add(git_dir)
        kinds = {name: _kind(f"{git_dir}/{name}") for name in _NAMES}
        self._add(git_dir, *map(str, kinds.values()))
        for name in _READ:
            if kinds[name]:
                self.tree(f"{git_dir}/{name}")
        for gitlink in gitlinks(git_dir):
            self._submodule(f"{tree}/{os.fsdecode(gitlink)}")
        if kinds["modules"] == stat.S_IFDIR:
            self._modules(f"{git_dir}/modules")

    def tree(self, path: str) -> None:
        """Add a file, or everything in a folder except sample hooks, to the digest."""
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            mode = 0
        if stat.S_ISDIR(mode):
            for name in sorted(os.listdir(path)) if self.budget else ():
                if not name.endswith(".sample"):
                    self.tree(f"{path}/{name}")
        elif stat.S_ISREG(mode):
            self._add(path, str(mode & stat.S_IXUSR), read_file(Path(path), _LIMIT_BYTES))
        else:
            self._add(path, str(mode), os.readlink(path) if stat.S_ISLNK(mode) else "")

    def _submodule(self, tree: str) -> None:
        inner = f"{tree}/.git"
        if (kind := _kind(inner)) == stat.S_IFDIR:
            self.repository(tree, inner)
        elif kind:
            self.tree(inner)
            content = os.fsdecode(read_file(Path(inner), _LIMIT_BYTES) or b"")
            target = os.path.normpath(os.path.join(tree, content.removeprefix("gitdir:").strip()))
            if target.startswith(f"{self.root}/.git/modules/"):
                self.repository(tree, target)

    def _modules(self, folder: str) -> None:
        """Add the repositories of submodules to the digest; a submodule's name may contain slashes."""
        for name in sorted(os.listdir(folder)) if self.budget else ():
            path = f"{folder}/{name}"
            if _kind(path) != stat.S_IFDIR:
                self._add(path)
            elif _kind(f"{path}/HEAD") or _kind(f"{path}/config"):
                self.repository(path, path)
            else:
                self._modules(path)

    def _add(self, path: str, *parts: str | bytes | None) -> None:
        self.budget = max(self.budget - 1, 0)
        self.digest.update(repr((path, parts)).encode(errors="surrogateescape"))


def _kind(path: str) -> int:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def gitlinks(git_dir: str) -> tuple[bytes, ...]:
    """Return the paths of submodules in a repository's index: git also reads the repositories at these paths."""
    gitlinks: list[bytes] = []
    with suppress(OSError):
        for name in os.listdir(git_dir):
            if name == "index" or name.startswith("sharedindex."):
                facts = os.lstat(f"{git_dir}/{name}")
                gitlinks += _gitlinks_in(f"{git_dir}/{name}", (facts.st_ino, facts.st_ctime_ns, facts.st_size))
    return tuple(path for path in gitlinks if path and b".." not in path.split(b"/") and not path.startswith(b"/"))


@lru_cache(maxsize=64)
def _gitlinks_in(index: str, stamp: tuple[int, int, int]) -> tuple[bytes, ...]:  # noqa: ARG001 -- of that index
    content = read_file(Path(index)) or b""
    is_compressed = content[4:8] == b"\0\0\0\4"
    return tuple(_compressed_gitlinks(content) if is_compressed else _plain_gitlinks(content))


def _plain_gitlinks(content: bytes) -> Iterator[bytes]:
    """Yield the paths that look like submodules in an index of version 2 or 3; a false match does no harm."""
    at = content.find(_GITLINK, _HEADER_BYTES)
    while at >= 0:
        name = at - _MODE_AT + _name_at(content, at - _MODE_AT)
        yield content[name : content.find(b"\0", name)]
        at = content.find(_GITLINK, at + 1)


def _compressed_gitlinks(content: bytes) -> Iterator[bytes]:
    """Yield the submodules' paths in an index of version 4, which stores names as differences."""
    start, name = _HEADER_BYTES, b""
    for _ in range(int.from_bytes(content[8:12], "big")):
        at = start + _name_at(content, start)
        dropped = 0
        while at < len(content):
            byte, at = content[at], at + 1
            dropped = (dropped << 7) + (byte & 0x7F)
            if byte < 0x80:  # noqa: PLR2004 -- the last one of the number
                break
            dropped += 1
        end = content.find(b"\0", at)
        if end < 0:
            return
        name = name[: len(name) - dropped] + content[at:end]
        if content[start + _MODE_AT : start + _MODE_AT + 4] == _GITLINK:
            yield name
        start = end + 1


def _name_at(content: bytes, start: int) -> int:
    """Return where the name begins in the index entry at `start`."""
    return _NAME_AT + (2 if int.from_bytes(content[start + _FLAGS_AT : start + _FLAGS_AT + 1]) & _EXTENDED else 0)
