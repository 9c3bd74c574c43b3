"""One at a time: locks on files, which the kernel lets go when their holder dies."""

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

_SHORTEST_LOOK_SECONDS: Final = 0.001
_LONGEST_LOOK_SECONDS: Final = 0.02
_HOLDER_SECONDS: Final = 0.5
"""Between two looks at whoever holds the lock."""
_AGAIN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long whoever holds a lock is waited for."""

    seconds: float = 3900.0
    """One that works: the longest that is done under a lock is a transfer of git, which ends after an hour."""
    stopped_seconds: float = 10.0
    """One that was stopped, as by SIGSTOP: it may never go on."""


_USUAL: Final = Patience()


@contextmanager
def hold_lock(path: Path, patience: Patience = _USUAL) -> Iterator[int]:
    """Hold the lock on file `path` for as long as the block lasts; wait for whoever holds it now.

    The block gets its descriptor: a process that inherits the descriptor holds the lock as long as it lives.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: Whoever holds it was stopped, or keeps it too long.
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
    """Share the lock on file `path` with others for as long as the block lasts, and give its descriptor.

    Whoever has it alone is waited for. A process that inherits the descriptor shares the lock as long as it lives.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: Whoever holds it was stopped, or keeps it too long.
        OSError: The file can be neither opened nor made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = open_lock(path)
    try:
        await_lock(path, descriptor, patience, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock's file, made for this user alone where it is absent; nothing is held."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock on file `path` until it is closed; `None` when another holds it.

    `None` too where another has held it just now and has taken the file away, as with the folder in which it lay.
    """
    descriptor = open_lock(path)
    if try_lock(descriptor) and _is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def remove_lock(path: Path) -> bool:
    """Remove the file of a lock of `hold_lock` that nobody holds, and say whether it was removed.

    Whoever has opened the file and waits for it finds that it is gone, and makes another.
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
    """Lock an open file that others hold for a moment at the most, as a new one."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def await_lock(path: Path, descriptor: int, patience: Patience = _USUAL, kind: int = fcntl.LOCK_EX) -> None:
    """Lock the open file at `path`; look again and again, for the kernel's own wait cannot be left.

    Raises:
        HaltedError: The work that waits was halted.
        LockHeldError: Whoever holds it was stopped, or keeps it too long.
    """
    pause, began_at = _SHORTEST_LOOK_SECONDS, time.monotonic()
    ran_at, look_at = began_at, began_at + _HOLDER_SECONDS
    while not _lock_now(descriptor, kind):
        check_halt()
        time.sleep(pause)
        pause, now = min(2 * pause, _LONGEST_LOOK_SECONDS), time.monotonic()
        if now < look_at:
            continue
        look_at = now + _HOLDER_SECONDS
        if not _holder_is_stopped(path):
            ran_at = now
        elif now - ran_at > patience.stopped_seconds:
            raise _held_error(path)
        if now - began_at > patience.seconds:
            raise _held_error(path)


def try_lock(descriptor: int) -> bool:
    """Lock an open file, and say whether that was possible: not where another holds it."""
    return _lock_now(descriptor, fcntl.LOCK_EX)


def lock_is_held(path: Path, kind: int = fcntl.LOCK_SH) -> bool:
    """Say whether another process holds the lock; with `LOCK_EX` also whether others share it.

    A shared one is tried, so that two who ask do not deceive each other. Who takes the lock at that very moment is
    refused, and has to ask once more.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock_now(descriptor, kind)
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Say whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock_now(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder_is_stopped(path: Path) -> bool:
    # Imported here, for nearly always nobody holds a lock for long.
    from septet.system.lock_holder import read_lock_holders, stopped_holder

    return stopped_holder(path, read_lock_holders()) is not None


def _held_error(path: Path) -> LockHeldError:
    """Return the error that says who holds a lock."""
    from septet.system.lock_holder import holder_of

    return LockHeldError(
        f"{path} is locked by {holder_of(path) or 'an unknown process'}.",
        remedy="If that process was stopped, let it continue (`kill -CONT`) or end it.",
        retry_after_seconds=_AGAIN_SECONDS,
    )
