"""The moments at which a new worker attaches to surviving agents: their supervisors get another connection."""

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
    """A living agent, and the connections of its supervisor."""

    life: Life
    supervisor: Pid
    sockets: frozenset[str]
    """The supervisor's sockets at that time: its listener, and one for each attached attempt."""

    @classmethod
    def now(cls, life: Life) -> "Followed":
        """Return an agent with its present connections."""
        supervisor = supervisor_of(life.pid)
        return cls(life, supervisor, sockets_of(supervisor))

    @property
    def attached_again(self) -> bool:
        """Return whether another attempt has attached."""
        return not sockets_of(self.supervisor) <= self.sockets


async def attached_at(followed: Followed, over: Callable[[], bool]) -> float | None:
    """Return the time at which the next attempt attaches; `None` if the agent ends or `over` is true before."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not over() and followed.life.pid.lives and time.monotonic() < deadline:
        if followed.attached_again:
            return time.time()
        await asyncio.sleep(_LOOK_SECONDS)
    return None
