"""Write files completely or not at all, sync files to disk, read values from JSON files, and lock files."""

import fcntl
import os
import secrets
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from septet.errors import LockHeldError
from septet.system.processes import check_halt

DRAFTS: Final = ".*.lock"
"""The pattern of the names of drafts, which replace a file when complete; a killed process leaves its draft."""

_CHECKSUM_BYTES: Final = 4

_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""The call of macOS that syncs bytes to disk; `fsync` of macOS leaves the bytes in the drive's cache."""


def fsync(descriptor: int) -> None:
    """Sync the content of the file `descriptor` to disk."""
    if _FULL_FSYNC is not None:
        fcntl.fcntl(descriptor, _FULL_FSYNC)
    else:
        os.fsync(descriptor)


@contextmanager
def close_after(descriptor: int) -> Iterator[int]:
    """Yield an open descriptor, and close the descriptor after the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def fsync_folder(folder: Path) -> None:
    """Sync the names in `folder` to disk."""
    with close_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        fsync(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to the file `path`, completely or not at all; a power failure may lose the file.

    The draft is in the same folder. Its name ends with `.lock`, so git does not take it for a ref.
    """
    _replace(path, content, on_disk=False)


def write_durably(path: Path, content: bytes) -> None:
    """Write `content` to the file `path`, completely or not at all, and sync the file to disk."""
    _replace(path, content, on_disk=True)
    fsync_folder(path.parent)


def with_checksum(body: bytes) -> bytes:
    """Return `body` followed by a checksum; `whole_body` checks it."""
    return body + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES)


def whole_body(content: bytes) -> bytes | None:
    """Return the content without its checksum; `None` if the checksum shows that the file is incomplete."""
    body, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    return body if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES) == checksum else None


def write_first(path: Path, content: bytes) -> None:
    """Write `content` to the file `path`, unless the file exists; of several processes, the first wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        create_file(draft, content)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def create_file(path: Path, content: bytes) -> None:
    """Create a file with `content` that only this user can read.

    Raises:
        FileExistsError: The file exists already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with _naming(path), os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes, *, on_disk: bool) -> None:
    """Replace a file by a new file with `content` that only this user can read."""
    draft = path.with_name(f".{secrets.token_hex(8)}.lock")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with _naming(path), os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if on_disk:
                file.flush()
                fsync(descriptor)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file's name to an `OSError` of the block, if the error has no name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


Model = TypeVar("Model", bound=BaseModel)
Struct = TypeVar("Struct", bound=msgspec.Struct)


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return a pydantic model from a JSON file; `None` if the file is missing or invalid.

    Raises:
        OSError: The file may exist, but cannot be read.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_struct(path: Path, struct: type[Struct]) -> Struct | None:
    """Return a msgspec struct from a JSON file; `None` if the file cannot be read or is invalid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=struct)
    except (OSError, msgspec.MsgspecError):
        return None


_LONGEST_LOOK_SECONDS: Final = 0.02
_HOLDER_SECONDS: Final = 0.5
"""The seconds between two checks of the process that holds the lock."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a process that holds a lock."""

    seconds: float = 3900.0
    """The seconds to wait for a running process; the longest work under a lock is a git transfer of an hour."""
    stopped_seconds: float = 10.0
    """The seconds to wait for a stopped process (by SIGSTOP), which may never continue."""


_USUAL: Final = Patience()


@contextmanager
def hold_lock(path: Path, patience: Patience = _USUAL) -> Iterator[int]:
    """Hold the lock on the file `path` during the block; first wait while another process holds the lock.

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
    """Hold a shared lock on the file `path` during the block, and yield the lock's descriptor.

    First wait while a process holds the exclusive lock. A process that inherits the descriptor shares the lock as
    long as it lives.

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
    """Open the file of a lock, and return its descriptor, without taking the lock; make a missing file."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def take_lock(path: Path) -> int | None:
    """Take the lock on the file `path` and return its descriptor; `None` if another process holds the lock.

    Also return `None` if the file was removed at the same moment.
    """
    descriptor = open_lock(path)
    if try_lock(descriptor) and _is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def remove_lock(path: Path) -> bool:
    """Delete the file of a lock, unless a process holds the lock; return whether the file was deleted.

    A process that waits in `hold_lock` notices that the file is missing, and makes a new file.
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
    """Take the lock on an open file; wait without a limit, because other processes hold this lock only briefly."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def await_lock(path: Path, descriptor: int, patience: Patience = _USUAL, kind: int = fcntl.LOCK_EX) -> None:
    """Wait for the lock on the open file at `path`; the wait can be interrupted, unlike the kernel's own wait.

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
    """Try to take the lock on an open file; return whether this process holds the lock now."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_is_held(path: Path, kind: int = fcntl.LOCK_SH) -> bool:
    """Return whether another process holds the exclusive lock or, if `kind` is `LOCK_EX`, a shared lock.

    The check takes a lock of this kind for a moment. A process that tries to take the lock in this moment
    fails, and must try again.
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
