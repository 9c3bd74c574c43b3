"""Remove lock files that a killed git left, but never a lock file that a process may hold.

A repository in which several work orders write at once, such as a vault, has a guard file next to it. Every thread
and git of Septet that may make lock files holds a shared lock on the guard, and the removal needs an exclusive
lock. So a lock file of a living thread or git never counts as stale. Agents and people do not use the guard; their
processes are searched for in the process list.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from septet.errors import GitBusyError
from septet.system.durable import close_after
from septet.system.locks import share_lock, take_lock

_AT_THE_TOP: Final = (
    "index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "objects/maintenance.lock",
)  # fmt: skip


def guard_of(git_dir: Path) -> Path:
    """Return the path of a repository's guard file, which stays when the repository is removed."""
    return git_dir.with_name(f"{git_dir.name}.guard")


@contextmanager
def share_guard(guard: Path | None) -> Iterator[tuple[int, ...]]:
    """Share the guard during the block; yield the descriptors that a git must inherit to share the guard too.

    A process that may not write next to the repository makes no lock files in it either, and yields no descriptor.
    """
    if guard is None or not os.access(guard.parent, os.W_OK):
        yield ()
        return
    with share_lock(guard) as descriptor:
        yield (descriptor,)


def clear_unguarded_locks(git_dir: Path) -> None:
    """Remove the stale lock files of a repository with a guard, unless a process of Septet shares the guard.

    Raises:
        GitBusyError: A living process that does not use the guard may hold a lock file.
    """
    descriptor = take_lock(guard_of(git_dir))
    if descriptor is not None:
        with close_after(descriptor):
            clear_stale_locks(git_dir)


def clear_stale_locks(git_dir: Path, work_tree: Path | None = None) -> None:
    """Remove the lock files of a repository whose git was killed, and follow no links.

    The caller ensures that Septet makes no lock files in the repository meanwhile, and that the repository's
    folders are not links. git writes no owner into its locks: a living owner is a process named `git…` that works
    in the repository or names it, or any process that has the lock open.

    Raises:
        GitBusyError: A living process holds a lock file.
    """
    found = [git_dir / name for name in _AT_THE_TOP]
    for folder, _, names in os.walk(git_dir / "refs"):
        found += (Path(folder) / name for name in names if name.endswith(".lock"))
    locks = {lock: identity for lock in found if (identity := _identity(lock))}
    if not locks:
        return
    from septet.system.lock_holder import command_line, find_lock_owner  # usually there is no lock

    holder = find_lock_owner(list(locks), [git_dir, *([work_tree] if work_tree is not None else [])])
    if holder is not None:
        raise GitBusyError(
            f"{next(iter(locks))} is held: process {holder.pid} ({command_line(holder)}) works there.",
            remedy=f"Septet tries again a few times. Check process {holder.pid}, then run `septet retry`.",
        )
    for lock, identity in locks.items():
        if _identity(lock) == identity:  # not of a git that has started since
            lock.unlink(missing_ok=True)


def _identity(lock: Path) -> tuple[int, ...]:
    """Return values that no later lock file of this name has; empty if `lock` is neither a file nor a link."""
    try:
        facts = lock.lstat()
    except OSError:
        return ()
    is_lock = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
    return (facts.st_ino, facts.st_ctime_ns) if is_lock else ()
