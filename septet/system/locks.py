"""One at a time: locks on files, which the kernel lets go when their holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from septet.system.durable import close_after
from septet.system.processes import current_halt

_LOOK_SECONDS: Final = 0.02


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock on file `path` for as long as the block lasts; wait for whoever holds it now.

    Raises:
        HaltedError: The work that waits was halted.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        with close_after(open_lock(path)) as descriptor:
            _await_lock(descriptor)
            if _is_at(path, descriptor):
                yield
                return


@contextmanager
def share_lock(path: Path) -> Iterator[int]:
    """Share the lock on file `path` with others for as long as the block lasts, and give its descriptor.

    Whoever has it alone is waited for. A process that inherits the descriptor shares the lock as long as it lives.

    Raises:
        OSError: The file can be neither opened nor made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock's file, made for this user alone where it is absent; nothing is held."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock on file `path` until it is closed; `None` when another holds it."""
    descriptor = open_lock(path)
    if try_lock(descriptor):
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
    """Lock an open file; wait for whoever holds it now."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock an open file, and say whether that was possible: not where another holds it."""
    return _lock_now(descriptor, fcntl.LOCK_EX)


def lock_is_held(path: Path) -> bool:
    """Say whether another process holds the lock. A shared one is tried: two who ask do not deceive each other."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock_now(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Say whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _await_lock(descriptor: int) -> None:
    """Lock an open file; a wait that may be halted looks again and again, for the kernel's own cannot be left."""
    halt = current_halt()
    if halt is None:
        lock(descriptor)
        return
    while not try_lock(descriptor):
        halt.check()
        time.sleep(_LOOK_SECONDS)


def _lock_now(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
