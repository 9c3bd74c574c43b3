"""The attempts at activities that a process carries out, and their heartbeats.

Heartbeats are rare, and do not depend on an agent's output; an attempt can be had ask the server at any time what
has become of it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from temporalio import activity

from septet.agents.runs.folders import RunKey
from septet.agents.turns.follow import TurnProgress

_OUTAGE: Final = timedelta(seconds=30)
"""How long a server may be away without costing an attempt: three times an outage of ten seconds."""
_SHORT: Final = timedelta(seconds=2)
"""Between heartbeats where the time-out leaves no more."""


@dataclass(frozen=True, slots=True, eq=False)
class RunningAttempt:
    """One attempt. What the server has to say comes with the answer to a heartbeat, and heartbeats are rare."""

    key: RunKey
    pause: timedelta
    """Between its heartbeats."""
    task_queue: str
    """Where it came from."""
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        """Have it send a heartbeat now: a cancel, a pause, a reset or an end comes back with it."""
        self.bell.set()

    async def wait(self) -> None:
        """Wait until the next heartbeat is due, or asked for."""
        try:
            async with asyncio.timeout(self.pause.total_seconds()):
                await self.bell.wait()
        except TimeoutError:
            pass
        self.bell.clear()


@dataclass(frozen=True, slots=True)
class RunningAttempts:
    """Those of one process, which its one event loop carries out."""

    _attempts: list[RunningAttempt] = field(default_factory=list)

    def __iter__(self) -> Iterator[RunningAttempt]:
        """Give those that run now."""
        return iter(tuple(self._attempts))

    @contextmanager
    def holding(self) -> Iterator[RunningAttempt]:
        """Have the attempt that is carried out among them for as long as the block lasts."""
        info = activity.info()
        key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
        attempt = RunningAttempt(key, pause_between_heartbeats(info.heartbeat_timeout), info.task_queue)
        self._attempts.append(attempt)
        try:
            yield attempt
        finally:
            self._attempts.remove(attempt)

    def count(self, task_queue: str) -> int:
        """Return how many of a queue there are."""
        return sum(attempt.task_queue == task_queue for attempt in self)

    def ask(self, workflow_id: str) -> bool:
        """Have a workflow's attempts ask the server, and say whether there was one."""
        attempts = [each for each in self if each.key.workflow_id == workflow_id]
        for attempt in attempts:
            attempt.ask()
        return bool(attempts)


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """What the next heartbeat says."""

    progress: deque[TurnProgress] = field(default_factory=lambda: deque(maxlen=1))
    """How far the agent is; whoever follows it puts the latest in."""

    @property
    def details(self) -> tuple[object, ...]:
        """The agent's run, session, last event, tokens and turns; nothing while there is no agent."""
        return tuple(
            detail
            for latest in self.progress
            for detail in (latest.run.name, latest.session_id, latest.last_event, latest.tokens, latest.turns)
        )


@asynccontextmanager
async def heartbeating(attempts: RunningAttempts) -> AsyncIterator[Heartbeats]:
    """Send heartbeats for as long as the block lasts, as rarely as the time-out allows; a short one sends none."""
    heartbeats = Heartbeats()
    with attempts.holding() as attempt:

        async def beat() -> None:
            while True:
                await attempt.wait()
                activity.heartbeat(*heartbeats.details)

        task = asyncio.create_task(beat())
        try:
            yield heartbeats
        finally:
            task.cancel()


def pause_between_heartbeats(timeout: timedelta | None) -> timedelta:
    """Return the longest pause that still leaves time for an outage of the server; each heartbeat is paid for."""
    timeout = timeout or _OUTAGE
    return max(timeout - _OUTAGE, min(_SHORT, timeout / 4))
