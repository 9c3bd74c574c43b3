"""The trial of a soak: chaos with one worker that is not killed, measured again and again."""

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
"""All kinds that do not kill the server, whose memory is measured too."""
_SWEEP_SECONDS: Final = 60.0
_LIVE_SECONDS: Final = 3.0
"""The seconds between measurements: the server collects its garbage about four times a minute."""
_TRIES: Final = 10
"""The tries to read a work order's usage: the one steady worker may be slow."""
_AGAIN_SECONDS: Final = 1.0


@dataclass
class Soak(Trial):
    """A trial that removes its work soon after the end, so that nothing may grow."""

    every_seconds: float = 15.0
    """The seconds between two samples."""
    samples: list[Sample] = field(default_factory=list)
    _steady: Worker | None = None
    _beside: list[asyncio.Task[None]] = field(default_factory=list)
    """The tasks that measure and sweep until all work orders are closed."""
    _recovered: dict[str, list[str]] = field(default_factory=dict)
    _ledgers: dict[str, Ledger | None] = field(default_factory=dict)
    _closed_at: dict[str, float] = field(default_factory=dict)
    """The ends by the monotonic clock of work orders whose accounts are open."""
    _once_kept: set[str] = field(default_factory=set)
    """The objects of snapshots before their removal."""

    async def soak(self) -> Seen:
        """Run the trial with a second worker that lives through the whole soak."""
        self._steady = Worker(self.side.argv(self.ground), self.ground.env, self.ground.folder, self.ground.server)
        await self._steady.start()
        try:
            async with asyncio.TaskGroup() as group:  # a measurement that fails ends the soak
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
    """Run a soak on its own ground; return its observations and all samples."""
    async with ground(plan, SERVER_CONFIG) as laid:
        laid.env = {**laid.env, **short_terms()}
        await shorten_retention(laid.client)
        soak = Soak(laid, Septet(), plan, every_seconds=every_seconds)
        return await soak.soak(), soak.samples
