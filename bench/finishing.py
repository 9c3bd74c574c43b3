"""The times of the pull requests of many work orders on two slots, compared with first come first served."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from statistics import fmean
from typing import Final

from pydantic import JsonValue

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from workers.server.server import DYNAMIC_CONFIG

_SLOTS: Final = 2
_STEP_SECONDS: Final = 0.5
"""The seconds of an agent's step; a real agent takes minutes."""
_FIRST_COME: Final = {**DYNAMIC_CONFIG, "matching.enableFairness": False}
"""The configuration of a server that gives a slot to the longest waiting task."""
_BESIDE: Final = "first come first served"
_FEW: Final = 20
"""A number of work orders so small that many have begun when the first ends."""
_AT_ONCE: Final = 10
_FILES: Final = 20


def measure(pace: Pace) -> list[Figure]:
    """Run the same work orders on a server with fairness, and on a server without it."""
    return asyncio.run(_measured(pace.times(95, _FEW), pace.seed))


async def _measured(count: int, seed: int) -> list[Figure]:
    before = await _seconds_of(count, seed, _FIRST_COME)
    after = await _seconds_of(count, seed, DYNAMIC_CONFIG)
    note = f"{count} work orders at once on {_SLOTS} slots, {_STEP_SECONDS} s for each step's agent"
    first, mean = (0.1, 0.7) if count > _FEW else (0.35, 0.8)
    targets = (
        ("first", min, first * min(before)),
        ("mean", fmean, mean * fmean(before)),
        ("last", max, 1.1 * max(before)),
    )
    return [
        Figure(f"{what} pull request", of(after), "s", target, baseline=of(before), beside=_BESIDE, note=note)
        for what, of, target in targets
    ]


async def _seconds_of(count: int, seed: int, config: Mapping[str, JsonValue]) -> list[float]:
    """Return the seconds until each of this many work orders was completed, all started at once."""
    async with stage(config=config) as on:
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, _FILES, seed, on.settings.git_env)
        own = {"SEPTET_MAX_AGENTS": str(_SLOTS), "SEPTET_SCRIPTED_STEP_SECONDS": str(_STEP_SECONDS)}
        async with worker(on, {**on.environ, **own}):
            places = asyncio.Semaphore(_AT_ONCE)
            ids = [f"wo-{number}" for number in range(count)]
            await asyncio.gather(*(_start(on, str(origin), order_id, places) for order_id in ids))
            times = await asyncio.gather(*(_began_and_ended(on, order_id) for order_id in ids))
    begin = min(began for began, _ in times)
    return [(ended - begin).total_seconds() for _, ended in times]


async def _start(on: Stage, origin: str, order_id: str, places: asyncio.Semaphore) -> None:
    async with places:
        given = WorkOrderInput(repository=origin, title="Tell that it is done", agent="scripted")
        await WorkOrders(on.client).start(given, order_id)


async def _began_and_ended(on: Stage, order_id: str) -> tuple[datetime, datetime]:
    """Return the start and the end of a work order, by the server's clock."""
    orders = WorkOrders(on.client)
    task = await orders.wait(order_id)
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")
    description = await orders.describe(order_id)
    if description.close_time is None:
        raise RuntimeError(f"{order_id} has not ended.")
    return description.start_time, description.close_time
