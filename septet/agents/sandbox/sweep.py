"""Leftovers of a supervisor that was killed: the processes that carry their run's mark, in whatever session."""

import time
from pathlib import Path
from typing import Final

import psutil

from septet.agents.processes.confined import FIRST_PROCESS, REPORT
from septet.agents.runs.folders import RUN_VARIABLE

_BOUND_SECONDS: Final = 3.0
"""What still lives after so many seconds of SIGKILL hangs in the kernel."""
_PAUSE_SECONDS: Final = 0.01
_CLOCK_SECONDS: Final = 2.0
"""By so much the start of a process may seem later than it was."""
_OWN_NAMESPACE: Final = Path("/proc/self/ns/pid")


def sweep_leftovers(mark: str, folder: Path) -> int:
    """Kill every process of a dead run and return how many there were.

    A process that cleared its environment is not found: only a pid namespace holds that one. A sandbox dies with
    those that are found; it is gone when its first process is, for the kernel ends that one last.

    Args:
        mark: The run's mark.
        folder: The run's folder.
    """
    killed: set[int] = set()
    bound = time.monotonic() + _BOUND_SECONDS
    while leftovers := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        for process in leftovers:
            killed.add(process.pid)
            _kill(process)
        if time.monotonic() > bound:
            break
        time.sleep(_PAUSE_SECONDS)
    while _sandbox_lives(folder / REPORT) and time.monotonic() < bound:
        time.sleep(_PAUSE_SECONDS)
    return len(killed)


def _sandbox_lives(report: Path) -> bool:
    """Whether the first process of a run's sandbox is there: another one that got its number started later."""
    try:
        if bytes(_OWN_NAMESPACE.readlink()) not in report.with_name("lock").read_bytes():
            return False  # a runner's: it has seen to it
        match = FIRST_PROCESS.search(report.read_bytes())
        first = psutil.Process(int(match[1])) if match is not None else None
        return (
            first is not None
            and first.status() != psutil.STATUS_ZOMBIE
            and first.create_time() < report.stat().st_ctime + _CLOCK_SECONDS
        )
    except (OSError, psutil.Error):
        return False


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE) == mark
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        return
