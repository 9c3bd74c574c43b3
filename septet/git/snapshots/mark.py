"""Tells "as at the base commit" from "changed": HEAD, index, files, and whatever else may hold somebody's work."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from septet.errors import GitError, WorkspaceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.contents import FILE, FOLDER
from septet.git.vault.ledger import LedgerEntry, Mark, Record
from septet.git.vault.pack import object_id
from septet.git.vault.survey import GIT_FOLDER, join
from septet.git.worktree.dot_git import read_head

_HEADS: Final = b".git/refs/heads"
_REWRITTEN: Final = frozenset({
    b"HEAD", b"index", b"config", b"refs", b"logs", b"COMMIT_EDITMSG", b"FETCH_HEAD", b"ORIG_HEAD",
})  # fmt: skip
"""What git rewrites while nobody's work changes; HEAD and the branches count by the commits that they name."""


def mark_of(place: Place, records: Mapping[bytes, Record]) -> Mark:
    """Return the mark of a worktree whose records are just made.

    Files and modes, what is left out, the commits that HEAD and the branches name, and the rest of `.git` with its
    objects (a stash, a dropped commit, a merge under way) make the essence.
    """
    within_git = {
        path: record for path, record in records.items() if path == GIT_FOLDER or path.startswith(b".git/")
    }
    files = {path: record for path, record in records.items() if path not in within_git}
    folder = _entries(within_git, GIT_FOLDER)
    parts = (
        records[b""].tree,
        [
            (path, item.name, item.entry.mode, item.entry.sha)
            for path, record in sorted(files.items())
            for item in record.outside
            if join(path, item.name) != GIT_FOLDER
        ],
        [
            (path, record.odd, record.missing)
            for path, record in sorted(files.items())
            if record.odd or record.missing
        ],
        _head(place),
        sorted(_moved_branches(within_git, place)),
        [(name, entry.sha) for name, entry in sorted(folder.items()) if name not in _REWRITTEN],
        [
            (name, entry.sha)
            for name, entry in sorted(_entries(within_git, b".git/refs").items())
            if name != b"heads"
        ],
    )
    essence = hashlib.sha256(msgspec.msgpack.encode(parts)).digest()
    index = folder.get(b"index")
    return Mark(essence, index.sha if index is not None and index.mode == FILE else b"")


def is_base(place: Place, now: Mark, base: Mark) -> bool:
    """Say whether nothing changed since the base commit: the index may be another file with the same entries."""
    if now.essence != base.essence:
        return False
    if now.index == base.index:
        return True
    index = Git(place.vault, place.worktree, place.env, index=place.worktree / ".git" / "index")
    question = ("diff-index", "--cached", "--quiet", "--ignore-submodules=none", place.base_sha)
    with suppress(GitError):
        return bool(now.index) and index.try_run(*question).exit_code == 0
    return False


def _entries(records: Mapping[bytes, Record], path: bytes) -> dict[bytes, LedgerEntry]:
    return records[path].entries() if path in records else {}


def _moved_branches(records: Mapping[bytes, Record], place: Place) -> set[bytes]:
    """Return the blobs of the branches' files that name another commit than the base."""
    at_base = object_id("blob", f"{place.base_sha}\n".encode())
    heads = (record for path, record in records.items() if path == _HEADS or path.startswith(_HEADS + b"/"))
    files = {entry.sha for record in heads for entry in record.entries().values() if entry.mode != FOLDER}
    return files - {at_base}


def _head(place: Place) -> str:
    """Return the commit of HEAD, whichever branch names it."""
    try:
        return read_head(place.worktree / ".git").sha
    except WorkspaceError:
        return ""
