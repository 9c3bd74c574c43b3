"""Kill the leftovers of a killed supervisor: the processes with their run's mark, in any session."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from septet.agents.processes.confined import FIRST_PROCESS, REPORT
from septet.agents.runs.folders import RUN_VARIABLE

_BOUND_SECONDS: Final = 3.0
"""The seconds after SIGKILL until a process that still lives counts as hanging in the kernel."""
_PAUSE_SECONDS: Final = 0.01
_CLOCK_SECONDS: Final = 2.0
"""The seconds by which the start of a process may seem later than the real start."""
_OWN_NAMESPACE: Final = Path("/proc/self/ns/pid")


def sweep_leftovers(mark: str, folder: Path) -> int:
    """Kill every process of a dead run and return their number.

    A process that cleared its environment is not found: only the pid namespace of a sandbox holds such a process.
    A sandbox dies with the processes that are found. The first process of a sandbox ends last, so the sweep waits
    for its end.
    """
    killed: set[int] = set()
    bound = time.monotonic() + _BOUND_SECONDS
    while leftovers := [process for process in psutil.process_iter() if _has_mark(process, mark)]:
        for process in leftovers:
            killed.add(process.pid)
            with suppress(psutil.Error):
                process.kill()
        if time.monotonic() > bound:
            break
        time.sleep(_PAUSE_SECONDS)
    while _sandbox_lives(folder / REPORT) and time.monotonic() < bound:
        time.sleep(_PAUSE_SECONDS)
    return len(killed)


def _sandbox_lives(report: Path) -> bool:
    """Return whether the first process of a run's sandbox lives, and not a later process with the same number."""
    try:
        if bytes(_OWN_NAMESPACE.readlink()) not in report.with_name("lock").read_bytes():
            return False  # a runner's sandbox, which the runner has swept
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
