"""Ten thousand work orders that wait for their plans' approval, and the time from an approval to the next step."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import psutil

from bench.figure import Figure, median, percentile
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, own_percents, stage, worker
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput

MEMORY_TARGET_MB: Final = 250.0
NEXT_TARGET_MS: Final = 200.0
_AHEAD: Final = 30
"""The work orders that may start before the earlier ones are parked."""
_FILES: Final = 20
_PARKED: Final = 'WorkflowType="WorkOrder" AND ExecutionStatus="Running" AND SeptetStatus="waiting"'
_LOOK_SECONDS: Final = 0.005
_COUNT_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 20.0
_WITHIN_SECONDS: Final = 600.0
"""The most seconds until a work order is parked, continues, or ends."""
_MB: Final = 1_000_000
_EMPTY: Final = "before the first work order"

_IDLE_FIGURES: Final = {
    "the worker's memory (RSS)": ("MB", MEMORY_TARGET_MB),
    "the server's memory (RSS)": ("MB", None),
    "the worker while nothing happens": ("% of a core", None),
}
Idle = tuple[float, float, float]
"""The measured values of the figures above."""


def measure(pace: Pace) -> list[Figure]:
    """Approve some while few wait, then some of ten thousand; 300 in all with `--quick`, or `--issues`."""
    return asyncio.run(_measured(pace.issues or pace.times(10_000, 300), pace.times(100, 20), pace.seed))


async def _measured(count: int, approvals: int, seed: int) -> list[Figure]:
    chance = random.Random(seed)  # noqa: S311 -- the same choice for the same seed
    async with stage() as on, worker(on) as engine:
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, _FILES, seed, on.settings.git_env)
        empty = await _idle(on, engine)
        few = [f"wo-few-{number}" for number in range(approvals)]
        await _park(on, str(origin), few, 0)
        alone = [await _next_step_ms(on, name) for name in few]
        many = [f"wo-{number}" for number in range(count)]
        begin = time.perf_counter()
        await _park(on, str(origin), many, 0)
        parked_seconds = time.perf_counter() - begin
        idle = await _idle(on, engine)
        beside = [await _next_step_ms(on, name) for name in chance.sample(many, approvals)]
    return _figures(count, parked_seconds, (idle, empty), alone, beside)


def _figures(
    count: int, seconds: float, idle: tuple[Idle, Idle], few_ms: Sequence[float], many_ms: Sequence[float]
) -> list[Figure]:
    named, (full, empty) = f"{count:,} parked", idle
    few = f"{len(few_ms)} parked"
    note = f"{len(many_ms)} of them, one after the other, with the command's way to it"
    p95, few_p95 = percentile(many_ms, 95), percentile(few_ms, 95)
    goes_on = f"{named}: approve to next step"
    return [
        *(
            Figure(f"{named}: {what}", value, unit, target, baseline=alone, beside=_EMPTY)
            for (what, (unit, target)), value, alone in zip(_IDLE_FIGURES.items(), full, empty, strict=True)
        ),
        Figure(f"{goes_on} p95", p95, "ms", NEXT_TARGET_MS, baseline=few_p95, beside=few, note=note),
        Figure(f"{goes_on} p50", median(many_ms), "ms", baseline=median(few_ms), beside=few),
        Figure("work orders parked in a minute", 60 * count / seconds, ""),
    ]  # fmt: skip


async def _park(on: Stage, origin: str, names: Sequence[str], parked: int) -> None:
    """Start work orders and wait until all of them are parked; at most `_AHEAD` are not parked yet."""
    orders = WorkOrders(on.client)
    for number, name in enumerate(names):
        if number % _AHEAD == 0:
            await _until_parked(on, parked + number - _AHEAD)
        order = WorkOrderInput(
            repository=origin, title="Tell that it is done", agent="scripted", approve_plan=True
        )
        await orders.start(order, name)
    await _until_parked(on, parked + len(names))


async def _until_parked(on: Stage, count: int) -> None:
    async with asyncio.timeout(_WITHIN_SECONDS):
        while (await on.client.count_workflows(_PARKED)).count < count:  # noqa: ASYNC110 -- workers park them
            await asyncio.sleep(_COUNT_SECONDS)


async def _idle(on: Stage, engine: psutil.Process) -> Idle:
    await asyncio.sleep(_SETTLE_SECONDS)
    (percent,) = await own_percents((engine,), _IDLE_SECONDS)
    return engine.memory_info().rss / _MB, on.server.memory_info().rss / _MB, percent


async def _next_step_ms(on: Stage, name: str) -> float:
    """Approve a work order, and return the milliseconds until its next agent's start; wait for its end."""
    orders = WorkOrders(on.client)
    record = on.settings.state_dir / "runs" / name / "4-generate_branch-1" / "exit.json"
    begin = time.time()
    await OrderDecisions(orders).approve(name)
    async with asyncio.timeout(_WITHIN_SECONDS):
        started = await _started_at(record)
        task = await orders.wait(name)
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"{name} is {task.status.value}: {task.error}")
    return 1000 * (started - begin)


async def _started_at(record: Path) -> float:
    while not record.exists():  # noqa: ASYNC110, ASYNC240 -- another process makes it
        await asyncio.sleep(_LOOK_SECONDS)
    started: str = json.loads(record.read_bytes())["started_at"]  # noqa: ASYNC240 -- a small file
    return datetime.fromisoformat(started).timestamp()
