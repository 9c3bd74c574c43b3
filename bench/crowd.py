"""Ten times sixty simultaneous work orders on one repository: the number of failures, which should be 0."""

import asyncio
import time
from typing import Final

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task

_AT_ONCE: Final = 60
_FILES: Final = 100


def measure(pace: Pace) -> list[Figure]:
    """Start crowds of work orders, each after the end of the crowd before."""
    return asyncio.run(_measured(pace))


async def _measured(pace: Pace) -> list[Figure]:
    crowds = pace.times(10, 1)
    begin = time.perf_counter()
    failures: list[Task] = []
    async with stage() as on, worker(on):
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, _FILES, pace.seed, on.settings.git_env)
        for crowd in range(crowds):
            tasks = await asyncio.gather(
                *(_carry_out(on, str(origin), f"wo-{crowd}-{each}") for each in range(_AT_ONCE))
            )
            failures += [task for task in tasks if task.status is not Status.COMPLETED]
    seconds = time.perf_counter() - begin
    why = "; ".join(sorted({task.error.message[:80] for task in failures if task.error}))
    note = f"of {crowds} times {_AT_ONCE} at once on one repository, {seconds:.0f} s{': ' + why if why else ''}"
    return [Figure("work orders that failed", len(failures), "", 0, note=note)]


async def _carry_out(on: Stage, origin: str, order_id: str) -> Task:
    orders = WorkOrders(on.client)
    await orders.start(WorkOrderInput(repository=origin, title="Tell that it is done", agent="scripted"), order_id)
    return await orders.wait(order_id)
