"""Find the process that holds a lock on a file, or that made a lock file of git."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

_PID_FIELD: Final = 4
_FILE_FIELD: Final = 5

LockHolders = Mapping[int, Sequence[int]]
"""The ids of processes that took a file's lock, by the file's inode; files on two disks may share an inode."""


def read_lock_holders() -> LockHolders:
    """Return which processes hold locks on files; empty if the kernel has no report about locks."""
    holders: dict[int, list[int]] = {}
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            fields = line.split()
            if fields[1] == "FLOCK":
                inode = int(fields[_FILE_FIELD].rpartition(":")[2])
                holders.setdefault(inode, []).append(int(fields[_PID_FIELD]))
    return holders


def holder_of(path: Path) -> str:
    """Return a text that names the process that holds a file's lock, and its state; empty if unknown."""
    with suppress(OSError, psutil.Error):
        for pid in read_lock_holders().get(path.stat().st_ino, ()):
            process = psutil.Process(pid)
            return f"process {process.pid} ({process.name()}, {process.status()})"
    return ""


def stopped_holder(path: Path, holders: LockHolders) -> psutil.Process | None:
    """Return the process that holds a file's lock, if the process is stopped (by SIGSTOP); otherwise `None`.

    The kernel names the process that took the lock, although another process may hold it now. Therefore
    only a process that has the file open is returned, and never the calling process.
    """
    with suppress(OSError):
        for pid in holders.get(path.stat().st_ino, ()):
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                is_stopped = pid != os.getpid() and process.status() == psutil.STATUS_STOPPED
                if is_stopped and _has_open(process, path):
                    return process
    return None


def _has_open(process: psutil.Process, path: Path) -> bool:
    there = path.stat()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if os.path.samestat(descriptor.stat(), there):
                return True
    return False


def find_lock_owner(locks: list[Path], folders: list[Path]) -> psutil.Process | None:
    """Return a process that has one of `locks` open, or a git that works in one of `folders`; else `None`."""
    return next((process for process in psutil.process_iter() if _works(process, locks, folders)), None)


def _works(process: psutil.Process, locks: list[Path], folders: list[Path]) -> bool:
    """Return whether a living, readable process has one of `locks` open, or is a git in one of `folders`."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.name().startswith("git"):
            where = Path(process.cwd())
            named = [part.rpartition("=")[2] for part in process.cmdline()]
            if any(where.is_relative_to(folder) or str(folder) in named for folder in folders):
                return True
        lock_paths = {str(lock) for lock in locks}
        return any(file.path in lock_paths for file in process.open_files())
    except (psutil.Error, OSError):
        return False


def command_line(process: psutil.Process) -> str:
    """Return the beginning of a process's command line, for people."""
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return "which has just ended"
