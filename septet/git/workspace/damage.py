"""The repair of a mirror whose files are damaged, from its origin.

Workspaces and vaults borrow the mirror's objects by its path, so it is mended where it is: what is fetched anew is
laid beside what is there, and what had to make room is kept in the mirror's folder `damaged`. git reads the good
copy of an object when another one is bad.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.engine.engine import Git
from septet.git.engine.remote import Remote

_PACK_FILES: Final = (".pack", ".rev", ".idx")
"""In this order: git looks for the index and then expects the rest."""
_REFS: Final = ("refs", "packed-refs")
_UNPACK_LIMIT: Final = "fetch.unpackLimit"
"""All that is fetched becomes one pack, in which git looks before it looks among loose objects."""
_REFSPECS: Final = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


def mend(mirror: Path, remote: Remote, make: Callable[[Path], None]) -> None:
    """Fetch a mirror anew and complete the one that is there by it. The caller holds the mirror's lock.

    Args:
        mirror: The mirror; what is there stays.
        remote: The origin.
        make: Makes an empty mirror in a folder.

    Raises:
        SeptetError: The origin was not reached or refused, as for any fetch; then nothing was changed.
        OSError: The disk refused.
    """
    fresh = mirror.with_suffix(".mend")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        make(fresh)
        git = Git(fresh, env=remote.env)
        git.run("config", _UNPACK_LIMIT, "1")
        remote.fetch(fresh, *_REFSPECS)
        git.run("config", "--unset-all", _UNPACK_LIMIT)
        aside = mirror / "damaged" / secrets.token_hex(4)
        aside.mkdir(mode=0o700, parents=True)
        _lay_packs(fresh, mirror, aside)
        for name in ("HEAD", "config", "info/attributes"):
            _exchange(fresh / name, mirror / name, aside)
        for name in _REFS:
            _exchange(fresh / name, mirror / name, aside)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def see_whole(mirror: Git, commit: str) -> None:
    """See that a commit and all that it holds are there.

    Raises:
        GitError: They are not, and the origin does not give them any more.
    """
    try:
        mirror.run("rev-list", "--objects", "--quiet", commit, timeout_seconds=600.0)
    except GitError as error:
        message = f"{mirror.git_dir} is damaged, and its origin no longer has {commit[:12]}: {error.message}"
        remedy = "The worktree and its snapshots are kept: see `septet rescue list`, and start a new work order."
        raise GitError(message, remedy=remedy) from error


def _lay_packs(fresh: Path, mirror: Path, aside: Path) -> None:
    folder = mirror / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    packs = sorted((fresh / "objects" / "pack").glob("pack-*.pack"))
    for suffix in _PACK_FILES:
        for pack in packs:
            source = pack.with_suffix(suffix)
            if source.exists():
                _exchange(source, folder / source.name, aside)


def _exchange(source: Path, target: Path, aside: Path) -> None:
    """Put a file or folder in its place, a file at once for those who read it; what was there is kept aside."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_file():
        os.link(target, aside / target.name)
    elif target.exists():
        target.rename(aside / target.name)
    if source.exists():
        source.replace(target)
