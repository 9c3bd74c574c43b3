"""The attempts of activities that this process runs, and their heartbeats.

Heartbeats are rare, and the server reports a cancel or a pause only in its answer to a heartbeat. Therefore other
code in the process can make an attempt send a heartbeat now.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from temporalio import activity

from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.turns.follow import TurnProgress
from septet.system.processes import Halt

_OUTAGE: Final = timedelta(seconds=30)
"""The longest outage of the server in which no attempt is lost."""
_SHORT: Final = timedelta(seconds=2)
"""The pause between heartbeats if the time-out is too short for a longer pause."""


@dataclass(frozen=True, slots=True, eq=False)
class RunningAttempt:
    """An attempt. Other code can make it send a heartbeat; the server's answer reports a cancel or a pause."""

    key: RunKey
    pause: timedelta
    task_queue: str
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        """Send a heartbeat now, to learn of a cancel, a pause, a reset or an end."""
        self.bell.set()

    async def wait(self) -> None:
        """Wait until the next heartbeat is due or requested."""
        try:
            async with asyncio.timeout(self.pause.total_seconds()):
                await self.bell.wait()
        except TimeoutError:
            pass
        self.bell.clear()


@dataclass(frozen=True, slots=True)
class RunningAttempts:
    """All attempts that this process runs, in one event loop."""

    _attempts: list[RunningAttempt] = field(default_factory=list)

    def __iter__(self) -> Iterator[RunningAttempt]:
        """Return an iterator over the attempts that run now."""
        return iter(tuple(self._attempts))

    @contextmanager
    def holding(self) -> Iterator[RunningAttempt]:
        """Count the current activity's attempt as running while the block runs."""
        info = activity.info()
        key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
        attempt = RunningAttempt(key, pause_between_heartbeats(info.heartbeat_timeout), info.task_queue)
        self._attempts.append(attempt)
        try:
            yield attempt
        finally:
            self._attempts.remove(attempt)

    def count(self, task_queue: str) -> int:
        """Return how many running attempts came from a task queue."""
        return sum(attempt.task_queue == task_queue for attempt in self)

    def ask(self, workflow_id: str) -> bool:
        """Send heartbeats now for a workflow's attempts in this process; return whether there are any."""
        attempts = [each for each in self if each.key.workflow_id == workflow_id]
        for attempt in attempts:
            attempt.ask()
        return bool(attempts)


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The agent's latest progress, which the next heartbeat reports."""

    progress: deque[TurnProgress] = field(default_factory=lambda: deque(maxlen=1))
    """At most one element: the latest progress, appended by the code that follows the agent."""

    @property
    def details(self) -> tuple[object, ...]:
        """The agent's run, session, last event, tokens and turns; empty without an agent."""
        return tuple(
            detail
            for latest in self.progress
            for detail in (latest.run.name, latest.session_id, latest.last_event, latest.tokens, latest.turns)
        )


@asynccontextmanager
async def heartbeating(attempts: RunningAttempts) -> AsyncIterator[Heartbeats]:
    """Send heartbeats while the block runs, as rarely as the time-out allows; a short block sends none."""
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
    """Return the longest pause between heartbeats with which an attempt survives an outage of the server."""
    timeout = timeout or _OUTAGE
    return max(timeout - _OUTAGE, min(_SHORT, timeout / 4))


@dataclass(frozen=True, slots=True)
class Fence:
    """Lets an attempt have effects while the fence is open: while the attempt is the latest and not cancelled."""

    key: RunKey
    """The running activity; only an attempt with an equal key adopts the agents of an earlier attempt."""
    lease: Lease
    halt: Halt = field(default_factory=Halt)
    """The switch that ends a push, or a check of the repository, when the attempt is cancelled."""

    def check(self) -> None:
        """Raise unless the fence is open; call this right before a commit, a push or a pull request.

        Raises:
            HaltedError: The attempt was cancelled.
            SupersededError: A later attempt has begun.
        """
        self.halt.check()
        self.lease.check()


def take_fence(runs: Runs, place_id: str, visit: str) -> Fence:
    """Record the running attempt as the latest, and return its fence.

    Args:
        visit: The id of the work order's visit to the lane; empty outside of lanes.

    Raises:
        SupersededError: A later attempt has begun already.
    """
    info = activity.info()
    key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
    lease = Lease.take(
        runs, key, lane=(place_id, visit), number=info.attempt, started_at=info.started_time.timestamp()
    )
    return Fence(key, lease)
