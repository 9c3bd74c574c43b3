"""What "on disk" means: the bytes, and the names under which they are found."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import Final

_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: its `fsync` leaves the bytes in the drive's cache."""


def fsync(descriptor: int) -> None:
    """Return once what `descriptor` holds is on disk."""
    if _FULL_FSYNC is not None:
        fcntl.fcntl(descriptor, _FULL_FSYNC)
    else:
        os.fsync(descriptor)


def fsync_folder(folder: Path) -> None:
    """Return once the names in `folder` are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: bytes) -> None:
    """Put a file with `content` at `path`, whole or not at all, and on disk.

    Until then the bytes lie beside it under a name that git passes over among its refs.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".lock")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            fsync(descriptor)
            os.fchmod(descriptor, 0o644)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    fsync_folder(path.parent)
