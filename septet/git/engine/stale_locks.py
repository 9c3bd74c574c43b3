"""Remove lock files that a killed git left, and respect lock files that a process may hold.

If several work orders write at once, as in a vault, the repository has a guard next to it: every thread and git of
the engine that may make lock files shares the guard, and a sweep needs it alone. The kernel knows which processes
share it, so a lock of a living thread or git never counts as stale. Processes of agents and people know no guard;
a sweep searches for them in the process list.
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
    """Return the guard file next to a repository, which stays when the repository is removed."""
    return git_dir.with_name(f"{git_dir.name}.guard")


@contextmanager
def share_guard(guard: Path | None) -> Iterator[tuple[int, ...]]:
    """Keep sweeps away during the block; yield descriptors, with which a git also keeps sweeps away.

    A process that may not write next to the repository makes no lock files in it either, and shares nothing.
    """
    if guard is None or not os.access(guard.parent, os.W_OK):
        yield ()
        return
    with share_lock(guard) as descriptor:
        yield (descriptor,)


def clear_unguarded_locks(git_dir: Path) -> None:
    """Remove the stale lock files of a repository with a guard, unless a process of the engine works there.

    Raises:
        GitBusyError: A living process without the guard holds a lock file.
    """
    descriptor = take_lock(guard_of(git_dir))
    if descriptor is not None:
        with close_after(descriptor):
            clear_stale_locks(git_dir)


def clear_stale_locks(git_dir: Path, work_tree: Path | None = None) -> None:
    """Remove the lock files of a repository whose git was killed; links are not followed.

    The caller ensures that the engine makes no lock files in the repository meanwhile, and that the repository has
    plain folders, since lock files in them are removed. git writes no owner into its locks: a living owner is a
    process named `git…` that works in the repository or names it, or any process that has the lock open.

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
    """Return an identity that no later lock file of this name has; empty if `lock` is neither file nor link."""
    try:
        facts = lock.lstat()
    except OSError:
        return ()
    is_lock = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
    return (facts.st_ino, facts.st_ctime_ns) if is_lock else ()
