"""The record that a supervisor leaves."""

import os
import time


def utc_text(seconds: float) -> str:
    """Return ISO 8601 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def write_record(name: str, record: bytes, outputs: list[int]) -> None:
    """Put a record on disk, after the outputs that it speaks of. A full disk takes nothing but the record."""
    try:
        for output in outputs:
            os.fsync(output)
        file = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(file, record)
        os.fsync(file)
        os.rename(f"{name}.new", name)
        folder = os.open(".", os.O_RDONLY)
        os.fsync(folder)
        os.unlink("control.sock")
    except OSError:
        return
