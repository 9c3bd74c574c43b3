"""Who holds a lock, as the kernel tells it: for messages that a person acts on, and for a worker's successor."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

_LOCKS: Final = Path("/proc/locks")
_PID_FIELD: Final = 4
_FILE_FIELD: Final = 5


def holder_of(path: Path) -> str:
    """Return the process that holds the lock on a file, with its state; nothing where the system does not tell."""
    with suppress(OSError, psutil.Error):
        process = _process_with(path)
        if process is not None:
            return f"process {process.pid} ({process.name()}, {process.status()})"
    return ""


def stopped_holder(path: Path) -> psutil.Process | None:
    """Return the process that holds the lock on a file and is stopped; `None` where it runs, or nobody tells.

    The kernel names who took a lock, also when another has inherited it since: so the file must be open there.
    """
    with suppress(OSError, psutil.Error):
        process = _process_with(path)
        if process is not None and process.status() == psutil.STATUS_STOPPED and _has_open(process, path):
            return process
    return None


def _process_with(path: Path) -> psutil.Process | None:
    inode = str(path.stat().st_ino)
    for line in _LOCKS.read_text(encoding="ascii").splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[_FILE_FIELD].rpartition(":")[2] == inode:
            return psutil.Process(int(fields[_PID_FIELD]))
    return None


def _has_open(process: psutil.Process, path: Path) -> bool:
    there = path.stat()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if os.path.samestat(descriptor.stat(), there):
                return True
    return False
