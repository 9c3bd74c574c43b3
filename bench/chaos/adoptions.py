"""When a new worker attaches to the agents that lived on: each attempt raises its run's epoch."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.chaos.journal import Life

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Followed:
    """A living agent's run, and how many attempts have attached to it until now."""

    life: Life
    folder: Path
    epoch: int

    @property
    def attached_again(self) -> bool:
        """Whether one more has attached."""
        return _epoch(self.folder) > self.epoch


def followed(state: Path, lives: list[Life]) -> list[Followed]:
    """Return the runs of living agents."""
    found = []
    for life in lives:
        records = (state / "runs" / life.tree).glob("*/run.json")
        folder = next(
            (path.parent for path in records if life.run and life.run.encode() in path.read_bytes()), None
        )
        if folder is not None:
            found.append(Followed(life, folder, _epoch(folder)))
    return found


async def attached_at(run: Followed, over: Callable[[], bool]) -> float | None:
    """Wait for the next attempt that attaches; `None` where the agent ends before, or all is over."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not over() and run.life.pid.lives and time.monotonic() < deadline:
        if run.attached_again:
            return time.time()
        await asyncio.sleep(_LOOK_SECONDS)
    return None


def _epoch(folder: Path) -> int:
    try:
        return (folder / "epoch").stat().st_size
    except FileNotFoundError:
        return 0
