"""The verdict of growth: a rise above the noise, without the rise of data that is kept on purpose and counted."""

from collections.abc import Mapping
from typing import Final

from bench.soak.slopes import Slope

_MB_OF_A_BRANCH: Final = 4 * 4096 / 1_000_000
"""The megabytes of a branch with one commit of one file: a name and three objects, each in its own block."""
_MB_OF_A_QUEUE: Final = 0.0004
_MB_OF_A_TIMER: Final = 0.0003
"""In the server's database 637 task queues with their index had 246 kB, and 130 timers 41 kB."""
_WHY_IT_GROWS: Final = {
    "branches": "one for each work order",
    "mirrors": "grows with the branches",
    "queues": "are kept for two days",
    "timers": "are kept for an hour",
    "rows": "grows with queues and timers",
    "database": "is what was in use at most",
    "server_memory": "what is live is flat",
}
_JUDGED_BY: Final = {"server_memory": "server_live"}
"""The measure that decides for another. The server's runtime keeps unused pages for hours, so that its memory
depends on its peak between two collections; a leak shows in the memory that is live after a collection."""


def verdict_of(name: str, slopes: Mapping[str, Slope]) -> str:
    """Return the verdict of a measure: flat, growing, or the reason of its growth."""
    if slopes[name].is_flat:
        return "flat"
    if not is_flat(name, slopes):
        return "grows"
    return _WHY_IT_GROWS[name]


def is_flat(name: str, slopes: Mapping[str, Slope]) -> bool:
    """Return whether a measure rises by no more than its noise, without data that is kept on purpose."""
    if not slopes[name].is_flat:
        name = _JUDGED_BY.get(name, name)
    return slopes[name].rise - _kept_on_purpose(slopes).get(name, 0.0) <= slopes[name].noise


def _kept_on_purpose(slopes: Mapping[str, Slope]) -> dict[str, float]:
    """Return the rise of each measure that follows from counted data.

    Each work order pushes a branch, and a mirror keeps it. The server keeps the task queues of a worker's process
    for two days after its end, and the timer of an account that the soak terminates for an hour. A database's file
    never shrinks: it is as large as its largest use, which varies.
    """
    branches, queues, timers = (slopes[name].rise for name in ("branches", "queues", "timers"))
    rows = max(queues, 0.0) * _MB_OF_A_QUEUE + max(timers, 0.0) * _MB_OF_A_TIMER
    database = rows + slopes["rows"].noise
    mirrors = branches * _MB_OF_A_BRANCH
    counted = {"branches": branches, "queues": queues, "timers": timers}
    return {**counted, "mirrors": mirrors, "rows": rows, "database": database}
