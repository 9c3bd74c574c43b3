"""Write the record that a supervisor leaves at the end of its program."""

import os
import time
from contextlib import suppress


def utc_text(seconds: float) -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def write_record(name: str, record: bytes, outputs: list[int]) -> None:
    """Write a record to disk, after the outputs and `run.json`; errors of the disk are ignored."""
    with suppress(OSError):
        for output in outputs:
            os.fsync(output)
        if os.path.exists("run.json"):  # a check or a set-up has no such file
            _force("run.json")
        file = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(file, record)
        finally:
            os.close(file)
        _force(f"{name}.new")
        os.rename(f"{name}.new", name)
        _force(".")
        os.unlink("control.sock")


def _force(path: str) -> None:
    """Return once the content of a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
