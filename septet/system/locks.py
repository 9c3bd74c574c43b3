"""Locks on files, which the kernel frees when the process that holds the lock dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import LockHeldError
from septet.system.durable import close_after
from septet.system.processes import check_halt

_LONGEST_LOOK_SECONDS: Final = 0.02
_HOLDER_SECONDS: Final = 0.5
"""The seconds between two checks of the process that holds the lock."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The longest times to wait for the process that holds a lock."""

    seconds: float = 3900.0
    """The seconds to wait for a running process; the longest work under a lock is a git transfer of an hour."""
    stopped_seconds: float = 10.0
    """The seconds to wait for a stopped process (by SIGSTOP), which may never continue."""


_USUAL: Final = Patience()


@contextmanager
def hold_lock(path: Path, patience: Patience = _USUAL) -> Iterator[int]:
    """Hold the lock on file `path` during the block; first wait for the process that holds it now.

    The block gets the lock's descriptor. A process that inherits the descriptor holds the lock as long as it
    lives.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: The process that holds the lock was stopped, or keeps the lock too long.
    """
    while True:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with close_after(open_lock(path)) as descriptor:
            await_lock(path, descriptor, patience)
            if _is_at(path, descriptor):
                yield descriptor
                return


@contextmanager
def share_lock(path: Path, patience: Patience = _USUAL) -> Iterator[int]:
    """Hold a shared lock on file `path` during the block, and yield the lock's descriptor.

    The function waits while a process holds the exclusive lock. A process that inherits the descriptor shares the
    lock as long as it lives.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: The process that holds the lock was stopped, or keeps the lock too long.
        OSError: The file can be neither opened nor made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with close_after(open_lock(path)) as descriptor:
        await_lock(path, descriptor, patience, fcntl.LOCK_SH)
        yield descriptor


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock's file, without taking the lock; make a missing file for this user only."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock on file `path` until it is closed; `None` if the lock is taken.

    Return `None` too if another process held the lock just now and removed the file or its folder.
    """
    descriptor = open_lock(path)
    if try_lock(descriptor) and _is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def remove_lock(path: Path) -> bool:
    """Remove the file of a lock, unless a process holds the lock; return whether the file was removed.

    A process that waits in `hold_lock` for the lock notices that the file is gone, and makes another file.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    with close_after(descriptor):
        if not try_lock(descriptor) or not _is_at(path, descriptor):
            return False
        path.unlink()
        return True


def lock(descriptor: int) -> None:
    """Lock an open file, and wait without a limit, because other processes lock the file only for a moment."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def await_lock(path: Path, descriptor: int, patience: Patience = _USUAL, kind: int = fcntl.LOCK_EX) -> None:
    """Wait for the lock on the open file at `path`, by polling: the kernel's own wait cannot be interrupted.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: The process that holds the lock was stopped, or keeps the lock too long.
    """
    pause, began_at = 0.001, time.monotonic()
    ran_at, look_at = began_at, began_at + _HOLDER_SECONDS
    while not try_lock(descriptor, kind):
        check_halt()
        time.sleep(pause)
        pause, now = min(2 * pause, _LONGEST_LOOK_SECONDS), time.monotonic()
        if now < look_at:
            continue
        from septet.system.lock_holder import holder_of, read_lock_holders, stopped_holder  # psutil takes long

        look_at = now + _HOLDER_SECONDS
        if stopped_holder(path, read_lock_holders()) is None:
            ran_at = now
        if now - ran_at > patience.stopped_seconds or now - began_at > patience.seconds:
            raise LockHeldError(
                f"{path} is locked by {holder_of(path) or 'an unknown process'}.",
                remedy="If that process was stopped, let it continue (`kill -CONT`) or end it.",
                retry_after_seconds=30.0,
            )


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Try to lock an open file, and return whether this process now holds the lock."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_is_held(path: Path, kind: int = fcntl.LOCK_SH) -> bool:
    """Return whether another process holds the exclusive lock; with `LOCK_EX`, a shared lock counts too.

    The check takes a shared lock for a moment, so that two checks at once do not mislead each other. A process
    that tries to take the lock at that moment fails, and must try again.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    with close_after(descriptor):
        return not try_lock(descriptor, kind)


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether an open file is still the file at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
