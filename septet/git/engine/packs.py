"""Few packs instead of many small files in the engine's own repositories; nothing is dropped, reachable or not."""

import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from septet.git.engine.engine import Git

PACKING_SECONDS: Final = 600.0
_PACKS_BEFORE_JOINING: Final = 50
_LOOSE_FOLDERS_BEFORE_PACKING: Final = 64
"""Of the 256 that loose objects lie in: then there are about 74, each of which takes a block of the disk."""
_FETCHED: Final = "tmp_*"
"""What git calls a pack or an object that it writes."""
_REPACKED: Final = ".tmp-*"
"""What `git repack` calls a pack that is not in its place yet. A later one fails at a half of such a pack."""


def has_many_packs(git_dir: Path) -> bool:
    """Say whether git, which looks through all packs for every object, would be quicker if they were joined."""
    return sum(1 for _ in (git_dir / "objects" / "pack").glob("*.pack")) > _PACKS_BEFORE_JOINING


def has_many_loose_objects(git_dir: Path) -> bool:
    """Say whether the disk would have more room if loose objects were packed; one folder is listed to find out."""
    with os.scandir(git_dir / "objects") as entries:
        return sum(len(entry.name) == len("ff") for entry in entries) > _LOOSE_FOLDERS_BEFORE_PACKING


def join_packs(repository: Git, objects: Path | None = None) -> None:
    """Join small packs, and loose objects with them. The caller holds the lock of those that do so.

    Who reads meanwhile does not mind, nor does who adds objects: git looks again for what has moved. Killed at any
    time, it leaves every object in one place at least.

    Args:
        repository: Where git runs.
        objects: Where the objects are; the repository's own when absent.

    Raises:
        GitError: git failed; then all is where it was.
    """
    _clear(objects or repository.git_dir / "objects", _REPACKED, timedelta(seconds=PACKING_SECONDS))
    repository.run("repack", "-d", "-l", "-q", "--geometric=2", timeout_seconds=PACKING_SECONDS)


def join_precious_packs(mirror: Git, scratch: Path) -> None:
    """Do the same in a repository whose objects are precious, where git refuses to remove a pack for any reason.

    It is asked by way of an empty repository, over the same objects: with neither refs nor that setting.

    Args:
        mirror: The repository; its caller holds the lock of those that write there.
        scratch: Where the empty repository may lie for a moment, made when it is missing.

    Raises:
        GitError: git failed; then all is where it was.
    """
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="packs-") as folder:
        empty = Git(Path(folder), env=mirror.env)
        empty.init("--bare")
        objects = mirror.git_dir / "objects"
        join_packs(empty.with_env(GIT_OBJECT_DIRECTORY=str(objects)), objects)
    mirror.run("pack-refs", "--all", timeout_seconds=PACKING_SECONDS)


def clear_unfinished_packs(git_dir: Path, older_than: timedelta) -> None:
    """Remove what a git that was killed has begun and left among the packs.

    Args:
        git_dir: The repository.
        older_than: What is younger may be under way.
    """
    _clear(git_dir / "objects", _FETCHED, older_than)
    _clear(git_dir / "objects", _REPACKED, timedelta(seconds=PACKING_SECONDS))


def is_older(path: Path, than: timedelta) -> bool:
    """Say whether a file was written that long ago, by the clock of this host, as git itself asks it."""
    return path.lstat().st_mtime < time.time() - than.total_seconds()


def _clear(objects: Path, pattern: str, older_than: timedelta) -> None:
    for path in (objects / "pack").glob(pattern):
        if is_older(path, older_than):
            path.unlink(missing_ok=True)
