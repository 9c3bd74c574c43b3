"""Heartbeats that do not depend on an agent's output."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from temporalio import activity

from activities.attempts import RunningAttempts
from septet.agents.turns.follow import TurnProgress


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
