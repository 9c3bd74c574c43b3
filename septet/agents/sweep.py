"""Leftovers of a supervisor that was killed: the processes that carry their run's mark, in whatever session."""

import time
from typing import Final

import psutil

from septet.agents.runs import RUN_VARIABLE

_BOUND_SECONDS: Final = 3.0
"""What still lives after so many seconds of SIGKILL hangs in the kernel."""
_PAUSE_SECONDS: Final = 0.01


def sweep_leftovers(mark: str) -> int:
    """Kill every process of a dead run and return how many there were.

    A process that cleared its environment is not found: only a pid namespace holds that one.
    """
    killed: set[int] = set()
    bound = time.monotonic() + _BOUND_SECONDS
    while left := [process for process in psutil.process_iter() if _carries(process, mark)]:
        for process in left:
            killed.add(process.pid)
            _kill(process)
        if time.monotonic() > bound:
            break
        time.sleep(_PAUSE_SECONDS)
    return len(killed)


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE) == mark
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        return
