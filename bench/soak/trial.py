"""The trial of a soak: chaos, with one worker that nobody kills, looked at again and again."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from temporalio.service import RPCError

from bench.chaos.evidence import blobs_in_vaults
from bench.chaos.ground import Worker, ground
from bench.chaos.ledgers import Ledger
from bench.chaos.plan import Kind, Plan
from bench.chaos.processes import Pid
from bench.chaos.side import Septet
from bench.chaos.trial import Seen, Trial
from bench.soak.live_memory import LiveMemory
from bench.soak.samples import Sample, Sampler
from bench.soak.sweep import KEEP, SERVER_CONFIG, end_accounts, end_reviews, short_terms, shorten_retention, sweep
from septet.errors import SeptetError

KINDS: Final[tuple[Kind, ...]] = ("worker", "restart", "supervisor", "agent", "tool", "proxy")
"""All that leave the server its life: its memory is looked at, too."""
_SWEEP_SECONDS: Final = 60.0
_LIVE_SECONDS: Final = 3.0
"""The server collects its garbage about four times a minute."""
_TRIES: Final = 10
"""To ask what a work order has used; one worker serves all the time, but may be slow."""
_AGAIN_SECONDS: Final = 1.0


@dataclass
class Soak(Trial):
    """A trial whose work is forgotten soon after it is done, so that nothing may grow."""

    every_seconds: float = 15.0
    """Between two looks."""
    samples: list[Sample] = field(default_factory=list)
    _steady: Worker | None = None
    _beside: list[asyncio.Task[None]] = field(default_factory=list)
    """Those that look and sweep, until all work orders are closed."""
    _recovered: dict[str, list[str]] = field(default_factory=dict)
    _ledgers: dict[str, Ledger | None] = field(default_factory=dict)
    _closed_at: dict[str, float] = field(default_factory=dict)
    """By the monotonic clock, of work orders whose accounts have not ended."""
    _once_kept: set[str] = field(default_factory=set)
    """What snapshots held before their time was over."""

    async def soak(self) -> Seen:
        """Carry the trial out, with a second worker that lives through all of it."""
        self._steady = Worker(self.side.argv(self.ground), self.ground.env, self.ground.folder, self.ground.server)
        await self._steady.start()
        try:
            async with asyncio.TaskGroup() as group:  # what cannot look any more ends the soak
                self._beside += [group.create_task(self._repeat(*each)) for each in self._repeated(self._steady)]
                seen = await self.carry_out()
        finally:
            await self._steady.end(signal.SIGTERM)
        return seen

    def _repeated(self, steady: Worker) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        server = self.ground.server
        database = self.ground.folder / "server" / "temporal.db"
        sampler = Sampler(
            steady.pid, server.pid, self.ground.state, database, time.monotonic(), self.ground.origins
        )

        live = LiveMemory(server.metrics)

        async def look() -> None:
            await live.look()
            self.samples.append(await asyncio.to_thread(sampler.sample, live.take()))

        return [(self.every_seconds, look), (_LIVE_SECONDS, live.look), (_SWEEP_SECONDS, self._sweep)]

    async def _repeat(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await do()

    async def _sweep(self) -> None:
        self._once_kept |= await asyncio.to_thread(blobs_in_vaults, self.ground.folder, self.ground.env)
        with suppress(RPCError):
            await end_reviews(self.ground.client)
            await end_accounts(self.ground.client, self._take_old())
            await sweep(self.ground.client)

    async def _closed(self, order: str) -> None:
        await super()._closed(order)
        for _ in range(_TRIES):
            with suppress(RPCError, SeptetError):
                self._recovered[order] = await self.side.rungs(self.ground, order)
                self._ledgers[order] = await self.side.ledger(self.ground, order)
                break
            await asyncio.sleep(_AGAIN_SECONDS)
        self._closed_at[order] = time.monotonic()

    def _take_old(self) -> list[str]:
        """Return the work orders that closed some time ago, each once."""
        old = [order for order, at in self._closed_at.items() if at < time.monotonic() - KEEP.total_seconds()]
        for order in old:
            del self._closed_at[order]
        return old

    async def _rungs(self, order: str) -> list[str]:
        return self._recovered.get(order, [])

    async def _ledger(self, order: str) -> Ledger | None:
        return self._ledgers.get(order)

    def _kept(self) -> set[str]:
        return super()._kept() | self._once_kept

    async def _orphans(self) -> dict[Pid, str]:
        for task in self._beside:
            task.cancel()
        if self._steady is not None:
            await self._steady.end(signal.SIGTERM)
        return await super()._orphans()


async def soaked(plan: Plan, every_seconds: float) -> tuple[Seen, list[Sample]]:
    """Carry a soak out on a ground of its own; return what was seen, and all samples."""
    async with ground(plan, SERVER_CONFIG) as laid:
        laid.env = {**laid.env, **short_terms()}
        await shorten_retention(laid.client)
        soak = Soak(laid, Septet(), plan, every_seconds=every_seconds)
        return await soak.soak(), soak.samples
