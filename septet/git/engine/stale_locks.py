"""Lock files that a git left when it was killed: removed where nobody can hold them, and respected else.

Where several work orders write at once, in a vault, there is a guard beside the repository: whatever of the engine
may make lock files there shares it, threads and gits alike, and a sweep wants it alone. The kernel knows who
shares it, so nothing of a living thread or git is ever taken for stale. What agents and people run knows no guard;
they are looked for among the processes.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from septet.errors import GitBusyError
from septet.system.locks import share_lock, take_lock

_AT_THE_TOP: Final = (
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
    "objects/maintenance.lock",
)
_SUFFIX: Final = ".lock"


def guard_of(git_dir: Path) -> Path:
    """Return the guard of a repository that has one: a file beside it, which stays when the repository goes."""
    return git_dir.with_name(f"{git_dir.name}.guard")


@contextmanager
def share_guard(guard: Path | None) -> Iterator[tuple[int, ...]]:
    """Keep sweeps away for as long as the block lasts, and give what a git must inherit to keep them away itself.

    Who may not write beside the repository makes no lock files in it either, and shares nothing.

    Args:
        guard: The repository's guard; `None` where it has none.
    """
    if guard is None or not os.access(guard.parent, os.W_OK):
        yield ()
        return
    with share_lock(guard) as descriptor:
        yield (descriptor,)


def clear_unguarded_locks(git_dir: Path) -> None:
    """Remove the stale lock files of a repository with a guard; none while anybody of the engine works there.

    Raises:
        GitBusyError: A living process that knows no guard holds one.
    """
    descriptor = take_lock(guard_of(git_dir))
    if descriptor is None:
        return
    try:
        clear_stale_locks(git_dir)
    finally:
        os.close(descriptor)


def clear_stale_locks(git_dir: Path, work_tree: Path | None = None) -> None:
    """Remove the lock files of a repository whose git was killed; links are not followed.

    The caller sees to it that nobody of the engine makes lock files there meanwhile. git writes no holder into its
    locks: a living one is a process named `git…` that works in the repository or names it, or any process that has
    the lock open.

    Args:
        git_dir: The repository; its folders must be plain ones, for what is removed lies in them.
        work_tree: Where a git would work that holds one of its locks.

    Raises:
        GitBusyError: A living process holds one.
    """
    locks = dict(_locks(git_dir))
    if not locks:
        return
    from septet.git.engine.lock_owner import command_line, find_lock_owner  # nearly always there is no lock

    holder = find_lock_owner(list(locks), [git_dir, *([work_tree] if work_tree is not None else [])])
    if holder is not None:
        raise GitBusyError(
            f"{next(iter(locks))} is held: process {holder.pid} ({command_line(holder)}) works there.",
            remedy=f"Septet tries again a few times. Check process {holder.pid}, then run `septet retry`.",
        )
    for lock, identity in locks.items():
        if _identity(lock) == identity:  # not of a git that has begun since
            lock.unlink(missing_ok=True)


def _locks(git_dir: Path) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Give the lock files of a repository, with what tells each from a later one of its name."""
    found = [git_dir / name for name in _AT_THE_TOP]
    for folder, _, names in os.walk(git_dir / "refs"):
        found += (Path(folder) / name for name in names if name.endswith(_SUFFIX))
    yield from ((lock, identity) for lock in found if (identity := _identity(lock)))


def _identity(lock: Path) -> tuple[int, ...]:
    """Return what tells a lock file from another one of its name; empty where there is none, nor a link."""
    try:
        facts = lock.lstat()
    except OSError:
        return ()
    is_lock = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
    return (facts.st_ino, facts.st_ctime_ns) if is_lock else ()
