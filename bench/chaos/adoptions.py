"""When a new worker attaches to the agents that lived on: their supervisors then have one more connection."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.chaos.journal import Life
from bench.chaos.processes import Pid, sockets_of, supervisor_of

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Followed:
    """A living agent, and who was connected to its supervisor."""

    life: Life
    supervisor: Pid
    sockets: frozenset[str]
    """The supervisor's, then: its door, and one for each who was attached."""

    @classmethod
    def now(cls, life: Life) -> "Followed":
        """Return an agent as it is followed now."""
        supervisor = supervisor_of(life.pid)
        return cls(life, supervisor, sockets_of(supervisor))

    @property
    def attached_again(self) -> bool:
        """Whether one more has attached."""
        return not sockets_of(self.supervisor) <= self.sockets


async def attached_at(followed: Followed, over: Callable[[], bool]) -> float | None:
    """Wait for the next attempt that attaches; `None` where the agent ends before, or all is over."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not over() and followed.life.pid.lives and time.monotonic() < deadline:
        if followed.attached_again:
            return time.time()
        await asyncio.sleep(_LOOK_SECONDS)
    return None
