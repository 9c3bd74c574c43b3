"""Leftovers of a supervisor that was killed: the processes that carry their run's mark, in whatever session."""

from typing import Final

import psutil

from septet.agents.runs import RUN_VARIABLE

_ROUNDS: Final = 5
_WAIT_SECONDS: Final = 1.0


def sweep_leftovers(mark: str) -> int:
    """Kill every process of a dead run and return how many there were.

    A process that cleared its environment is not found: only a pid namespace holds that one.
    """
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        left = [process for process in psutil.process_iter() if _carries(process, mark)]
        if not left:
            break
        for process in left:
            killed.add(process.pid)
            _kill(process)
        psutil.wait_procs(left, timeout=_WAIT_SECONDS)
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
