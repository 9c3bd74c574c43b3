"""One trial: work orders on one side under kills, and all observations after it."""

import asyncio
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalio.service import RPCError

from bench.chaos.blows import Blows
from bench.chaos.evidence import Delivered, blobs_in, delivered
from bench.chaos.ground import Ground, Worker, ground
from bench.chaos.journal import Life
from bench.chaos.kills import Adoption, Kill
from bench.chaos.ledgers import Ledger
from bench.chaos.plan import ROLLING_SECONDS, WEIGHTS, Kind, Plan
from bench.chaos.processes import Pid, command_of, of_folder
from bench.chaos.side import Side, is_closed
from bench.chaos.warm_blows import WarmBlows
from septet.errors import SeptetError

_LOOK_SECONDS = 0.3
_IN_TURN: tuple[Kind, ...] = ("worker", "restart")
_LAST_SECONDS = 20.0
"""The seconds for processes to end that are about to end."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The observations of a trial."""

    plan: Plan
    orders: tuple[str, ...]
    wall_seconds: float
    lives: list[Life]
    kills: list[Kill]
    adoptions: list[Adoption]
    delivered: list[Delivered]
    kept: frozenset[str]
    """Git's ids of all contents on a branch of the origin or kept beside it."""
    orphans: dict[Pid, str]
    """The processes that still lived at the end, with their command lines."""
    rungs: list[str]
    worker_ends: list[str] = field(default_factory=list)
    """The output of workers that ended by themselves."""
    unreplaced: list[str] = field(default_factory=list)
    """The agents whose proxy was killed and not replaced."""
    ledgers: list[Ledger] = field(default_factory=list)
    """The counts of the accounts of budgets; empty if hosts were lost with their agents' output."""
    raises: dict[str, int] = field(default_factory=dict)
    """The number of raises of a used-up budget, by work order."""
    ends: dict[str, str] = field(default_factory=dict)
    """The end by work order, as reported when it was over or the wait for it ended."""


@dataclass
class Trial:
    """A side on a ground, with a plan."""

    ground: Ground
    side: Side
    plan: Plan
    orders: list[str] = field(default_factory=list)
    worker_ends: list[str] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    """The end by work order, in its side's words."""
    _over: dict[str, list[int]] = field(default_factory=dict)
    """The tokens above a work order's limit at each raise of its budget."""

    async def carry_out(self) -> Seen:
        """Start work orders and kill until all are closed, and return the observations."""
        begin = time.monotonic()
        worker = Worker(self.side.argv(self.ground), self.ground.env, self.ground.folder, self.ground.server)
        self.ground.workers.append(worker)
        await worker.start()
        closed = asyncio.Event()
        async with asyncio.TaskGroup() as beside:
            blows = self._blows(beside)
            beside.create_task(self._strike(blows, closed))
            beside.create_task(self._see_to_workers(closed))
            beside.create_task(self._see_to_budgets(closed))
            await self._all_orders()
            closed.set()
        await blows.end_hanging()
        wall_seconds = time.monotonic() - begin
        rungs = [rung for order in self.orders for rung in await self._rungs(order)]
        ledgers = [each for order in self.orders if (each := await self._ledger(order)) is not None]
        for worker in self.ground.workers:
            await worker.end(signal.SIGTERM)
        return Seen(
            self.plan,
            tuple(self.orders),
            wall_seconds,
            self.ground.journal.lives(),
            blows.kills,
            blows.adoptions,
            [delivered(self._origin(order), order, self.ground.env) for order in self.orders],
            frozenset(self._kept()),
            await self._orphans(),
            rungs,
            self.worker_ends,
            blows.unreplaced,
            ledgers,
            {order: len(over) for order, over in self._over.items()},
            self.ends,
        )

    def _blows(self, beside: asyncio.TaskGroup) -> Blows:
        chance = random.Random(self.plan.seed)  # noqa: S311 -- to be done again
        struck = WarmBlows if self.plan.sessions == "shared" else Blows
        return struck(self.ground, self.side, self.plan, chance, beside)

    async def _strike(self, blows: Blows, closed: asyncio.Event) -> None:
        """Strike until all work orders are closed: each kind once in any order, then by their weights."""
        if self.plan.rolling:
            await self._roll(blows, closed)
            return
        kinds, most = self.side.aims(self.plan.kinds), self.plan.kills_at_most
        weights = [WEIGHTS[kind] for kind in kinds]
        while not await _within(closed, blows.chance.expovariate(1 / self.plan.every_seconds)):
            if most is not None and len(blows.kills) >= most:
                return
            struck = {kill.kind for kill in blows.kills}
            unstruck = [kind for kind in kinds if kind not in struck]
            kind = blows.chance.choice(unstruck) if unstruck else blows.chance.choices(kinds, weights)[0]
            await blows.strike(kind)

    async def _see_to_workers(self, closed: asyncio.Event) -> None:
        """Restart a worker that has ended by itself, as a machine would, and record its output."""
        while not await _within(closed, _LOOK_SECONDS):
            worker = self.ground.workers[-1]
            if (said := worker.last_words()) is not None:
                self.worker_ends.append(said)
                await worker.start()

    async def _see_to_budgets(self, closed: asyncio.Event) -> None:
        """Raise used-up budgets, as people do, and record the tokens above each limit."""
        while not await _within(closed, _LOOK_SECONDS):
            with suppress(RPCError, SeptetError):  # the worker or the server is away
                for order, over in (await self.side.raise_budgets(self.ground)).items():
                    self._over.setdefault(order, []).append(over)

    async def _roll(self, blows: Blows, closed: asyncio.Event) -> None:
        """End the worker every few seconds, by SIGKILL and SIGTERM in turn."""
        while not closed.is_set():
            for kind in _IN_TURN:
                most = self.plan.kills_at_most
                if not await _within(closed, ROLLING_SECONDS) and (most is None or len(blows.kills) < most):
                    await blows.worker(kind)

    async def _all_orders(self) -> None:
        places = asyncio.Semaphore(self.plan.at_once)
        begin = time.monotonic()

        async def one(number: int) -> None:
            async with places:
                if self.plan.minutes is None or time.monotonic() < begin + self.plan.minutes * 60:
                    order = f"wo-{number:03}"
                    await self._closed(order)
                    with suppress(RPCError, SeptetError):  # the worker or the server is away
                        self.ends[order] = await self.side.end_of(self.ground, order)

        await asyncio.gather(*map(one, range(self.plan.runs)))

    async def _closed(self, order: str) -> None:
        """Start a work order and wait until it is closed or the patience ends, also while the server is away."""
        deadline = time.monotonic() + self.plan.patience_seconds
        started = False
        while time.monotonic() < deadline:
            await self.ground.server.up.wait()
            try:
                if not started:
                    await self.side.start(self.ground, order, self._origin(order))
            except (RPCError, SeptetError):
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            if not started:
                started = True
                self._began(order)
            if await is_closed(self.ground, order):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _began(self, order: str) -> None:
        """Record a started work order."""
        self.orders.append(order)

    async def _rungs(self, order: str) -> list[str]:
        try:
            return await self.side.rungs(self.ground, order)
        except (RPCError, SeptetError):
            return []

    async def _ledger(self, order: str) -> Ledger | None:
        ledger = None if "host" in self.plan.kinds else await self.side.ledger(self.ground, order)
        return replace(ledger, over=max(self._over.get(order, [0]))) if ledger is not None else None

    def _origin(self, order: str) -> Path:
        return self.ground.origins[int(order.rpartition("-")[2]) % len(self.ground.origins)]

    def _kept(self) -> set[str]:
        branches = (blobs_in(origin, self.ground.env) for origin in self.ground.origins)
        return self.side.kept(self.ground).union(*branches)

    async def _orphans(self) -> dict[Pid, str]:
        """Wait for processes that are about to end; stop and return the others."""
        deadline = time.monotonic() + _LAST_SECONDS
        while (left := self._left()) and time.monotonic() < deadline:  # noqa: ASYNC110 -- other processes end
            await asyncio.sleep(_LOOK_SECONDS)
        found = {pid: command_of(pid) for pid in left}
        for pid in left:
            pid.signal(signal.SIGKILL)
        return found

    def _left(self) -> list[Pid]:
        return [pid for pid in of_folder(self.ground.folder) if pid != self.ground.server.pid]


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most this long, and return whether it was set."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def tried(side: Side, plan: Plan) -> Seen:
    """Run a trial on its own ground."""
    async with ground(plan) as laid:
        return await Trial(laid, side, plan).carry_out()
