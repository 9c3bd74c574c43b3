"""Write files so that content and names are on disk, and read values from JSON files."""

import fcntl
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

DRAFTS: Final = ".*.lock"
"""The pattern of the names of drafts, which replace files when complete; a killed process leaves its draft."""

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
    """Yield an open descriptor, and close it after the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def fsync_folder(folder: Path) -> None:
    """Sync the names in `folder` to disk."""
    with close_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
        fsync(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file with `content` to `path`, whole or not at all; a power failure may lose the file.

    The draft is in the same folder, under a name that git ignores among its refs.
    """
    _replace(path, content, on_disk=False)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file with `content` to `path`, whole or not at all, and sync the file to disk."""
    _replace(path, content, on_disk=True)
    fsync_folder(path.parent)


def with_checksum(body: bytes) -> bytes:
    """Return `body` with a checksum, by which `whole_body` detects a file that was written only in part."""
    return body + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES)


def whole_body(content: bytes) -> bytes | None:
    """Return the content without its checksum; `None` for a file that was written only in part."""
    body, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    return body if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES) == checksum else None


def write_first(path: Path, content: bytes) -> None:
    """Write a file with `content` to `path` unless the file exists: of two writing processes, the first wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        create_file(draft, content)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def create_file(path: Path, content: bytes) -> None:
    """Make a file that only this user can read.

    Raises:
        FileExistsError: The file exists already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with _naming(path), os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes, *, on_disk: bool) -> None:
    """Replace a file by a file with `content` that only this user can read."""
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
    """Add the file's name to an `OSError` in the block, because only errors of opening a file have a name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


Model = TypeVar("Model", bound=BaseModel)
Struct = TypeVar("Struct", bound=msgspec.Struct)


def read_model(path: Path, model: type[Model]) -> Model | None:
    """Return the value of a pydantic model from a JSON file; `None` if the file is missing or has no valid value.

    Raises:
        OSError: The file may exist, but cannot be read.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_struct(path: Path, struct: type[Struct]) -> Struct | None:
    """Return the value of a msgspec struct from a JSON file; `None` if no value can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=struct)
    except (OSError, msgspec.MsgspecError):
        return None
