"""Heartbeats that do not depend on an agent's output, and blocking work that is not torn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

from temporalio import activity

from septet.agents.turns.follow import TurnProgress
from septet.system.processes import Halt

_BEAT_SECONDS: Final = 1.0
"""The worker passes on one heartbeat in two seconds at the most; a cancel comes back with it."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Heartbeats:
    """What the next heartbeat says."""

    details: tuple[object, ...] = ()

    def follow(self, progress: TurnProgress) -> None:
        """Let the heartbeats say how far an agent is: its run, session, last event, tokens and turns."""
        self.details = (
            progress.run.name,
            progress.session_id,
            progress.last_event,
            progress.tokens,
            progress.turns,
        )


@asynccontextmanager
async def heartbeating() -> AsyncIterator[Heartbeats]:
    """Send heartbeats for as long as the block lasts."""
    pulse = Heartbeats()

    async def beat() -> None:
        while True:
            activity.heartbeat(*pulse.details)
            await asyncio.sleep(_BEAT_SECONDS)

    task = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        task.cancel()


async def shielded_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread; a cancel waits for its end, so that it is never left half done."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def until_cancelled(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread; a person's cancel ends the processes that it runs, others wait for it."""
    halt = Halt()

    def within_reach() -> T:
        with halt.over():
            return work(*args, **kwargs)

    running = asyncio.ensure_future(asyncio.to_thread(within_reach))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is not None and details.cancel_requested:
            halt.now()
        await asyncio.gather(running, return_exceptions=True)
        raise
