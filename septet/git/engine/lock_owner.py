"""The process that may hold a lock of git."""

from pathlib import Path

import psutil


def find_lock_owner(locks: list[Path], folders: list[Path]) -> psutil.Process | None:
    """Return a process that may hold one of some lock files in git's folders; `None` without such a process."""
    return next((process for process in psutil.process_iter() if _works(process, locks, folders)), None)


def _works(process: psutil.Process, locks: list[Path], folders: list[Path]) -> bool:
    """Return whether a process may hold one of the locks; false if it has ended or may not be inspected."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.name().startswith("git"):
            where = Path(process.cwd())
            argv = process.cmdline()
            if any(where.is_relative_to(folder) or _names(argv, folder) for folder in folders):
                return True
        lock_paths = {str(lock) for lock in locks}
        return any(file.path in lock_paths for file in process.open_files())
    except (psutil.Error, OSError):
        return False


def _names(argv: list[str], folder: Path) -> bool:
    return any(part.rpartition("=")[2] == str(folder) for part in argv)


def command_line(process: psutil.Process) -> str:
    """Return the beginning of a process's command line, for people."""
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return "which has just ended"
