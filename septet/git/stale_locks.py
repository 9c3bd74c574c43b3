"""Lock files that a git left when it was killed: removed where no living git can hold them, and respected else."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from septet.errors import GitBusyError

_AT_THE_TOP: Final = (
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
    "objects/maintenance.lock",
)
_SUFFIX: Final = ".lock"


def clear_stale_locks(git_dir: Path, work_tree: Path | None = None) -> None:
    """Remove the lock files of a repository whose git was killed; links are not followed.

    git writes no holder into its locks. A living one is a process named `git…` that works in the repository or
    names it, or any process that has the lock open.

    Args:
        git_dir: The repository; its folders must be plain ones, for what is removed lies in them.
        work_tree: Where a git would work that holds one of its locks.

    Raises:
        GitBusyError: A living process holds one.
    """
    locks = list(_locks(git_dir))
    if not locks:
        return
    holder = _holder(locks, [git_dir, *([work_tree] if work_tree is not None else [])])
    if holder is not None:
        raise GitBusyError(
            f"{locks[0]} is held: process {holder.pid} ({_command_line(holder)}) works there.",
            remedy=f"It is tried again a few times. See to process {holder.pid}, then `septet retry`.",
        )
    for lock in locks:
        lock.unlink(missing_ok=True)


def _locks(git_dir: Path) -> Iterator[Path]:
    for name in _AT_THE_TOP:
        lock = git_dir / name
        if lock.is_symlink() or lock.is_file():
            yield lock
    for folder, _, names in os.walk(git_dir / "refs"):
        yield from (Path(folder) / name for name in names if name.endswith(_SUFFIX))


def _holder(locks: list[Path], folders: list[Path]) -> psutil.Process | None:
    own = os.getpid()
    return next(
        (process for process in psutil.process_iter() if process.pid != own and _works(process, locks, folders)),
        None,
    )


def _works(process: psutil.Process, locks: list[Path], folders: list[Path]) -> bool:
    """Say whether a process may hold one of the locks; one that is gone, or that is not ours to ask, does not."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.name().startswith("git"):
            where = Path(process.cwd())
            argv = process.cmdline()
            if any(where.is_relative_to(folder) or _names(argv, folder) for folder in folders):
                return True
        lock_paths = {str(lock) for lock in locks}
        return any(file.path in lock_paths for file in process.open_files())
    except (psutil.Error, OSError):
        return False


def _names(argv: list[str], folder: Path) -> bool:
    return any(part.rpartition("=")[2] == str(folder) for part in argv)


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return "which has just ended"
