"""Join many small files of Septet's repositories into few packs; every object stays, needed or not."""

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
"""If more of the 256 folders than this contain loose objects, the objects are packed.

About 74 loose objects fill 64 folders. Each loose object takes a block of the disk.
"""
_REPACKED: Final = ".tmp-*"
"""The names of incomplete packs of a killed `git repack`, with which the next `git repack` would fail."""


def has_many_packs(git_dir: Path) -> bool:
    """Return whether there are so many packs that they should be joined, because git searches each of them."""
    return sum(1 for _ in (git_dir / "objects" / "pack").glob("*.pack")) > _PACKS_BEFORE_JOINING


def has_many_loose_objects(git_dir: Path) -> bool:
    """Return whether loose objects lie in so many folders that the objects should be packed."""
    with os.scandir(git_dir / "objects") as entries:
        return sum(len(entry.name) == len("ff") for entry in entries) > _LOOSE_FOLDERS_BEFORE_PACKING


def join_packs(repository: Git, objects: Path | None = None) -> None:
    """Join small packs and loose objects; the caller holds the repository's lock.

    Other processes may read and write objects meanwhile: git searches again for a moved object. After a kill,
    every object is still in at least one file.

    Raises:
        GitError: git failed; every object is still in place.
    """
    _clear(objects or repository.git_dir / "objects", _REPACKED, timedelta(seconds=PACKING_SECONDS))
    repository.run("repack", "-d", "-l", "-q", "--geometric=2", timeout_seconds=PACKING_SECONDS)


def join_precious_packs(mirror: Git, scratch: Path) -> None:
    """Join the packs of a mirror, whose setting `preciousObjects` forbids git to delete objects.

    Therefore git runs in an empty temporary repository in `scratch` that borrows the mirror's objects. The caller
    holds the lock of the mirror's writers.

    Raises:
        GitError: git failed; every object is still in place.
    """
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="packs-") as folder:
        empty = Git(Path(folder), env=mirror.env)
        empty.init("--bare")
        objects = mirror.git_dir / "objects"
        join_packs(empty.with_env(GIT_OBJECT_DIRECTORY=str(objects)), objects)
    mirror.run("pack-refs", "--all", timeout_seconds=PACKING_SECONDS)


def clear_unfinished_packs(git_dir: Path, older_than: timedelta) -> None:
    """Delete the unfinished packs and objects of a killed git; young ones may be in use and stay."""
    _clear(git_dir / "objects", "tmp_*", older_than)  # git's names for a pack or an object that it is writing
    _clear(git_dir / "objects", _REPACKED, timedelta(seconds=PACKING_SECONDS))


def is_older(path: Path, than: timedelta) -> bool:
    """Return whether a file was last written longer ago than `than`."""
    return path.lstat().st_mtime < time.time() - than.total_seconds()


def _clear(objects: Path, pattern: str, older_than: timedelta) -> None:
    for path in (objects / "pack").glob(pattern):
        if is_older(path, older_than):
            path.unlink(missing_ok=True)
