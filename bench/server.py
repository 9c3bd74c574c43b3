"""The tuned embedded server, compared with the same server without settings."""

import asyncio
import sys
import time

from bench.bare import QUEUE, Bare
from bench.figure import Figure, median
from bench.pace import Pace
from bench.stage import Stage, program, stage
from workers.server.server import DYNAMIC_CONFIG

_AT_ONCE = 50
BESIDE = "temporal server start-dev as it comes"


def measure(pace: Pace) -> list[Figure]:
    """Measure a workflow of seven activities: one after the other, and many at once."""
    after = asyncio.run(_latency_and_rate(pace, tuned=True))
    before = asyncio.run(_latency_and_rate(pace, tuned=False))
    note = f"p50 of {pace.times(40, 10)}, database on disk"
    return [
        Figure("workflow of 7 activities", after[0], "ms", baseline=before[0], beside=BESIDE, note=note),
        Figure(
            "workflows at once",
            after[1],
            "a second",
            baseline=before[1],
            beside=BESIDE,
            note=f"{pace.times(200, 50)} workflows, {_AT_ONCE} at a time",
        ),
    ]


async def _latency_and_rate(pace: Pace, *, tuned: bool) -> tuple[float, float]:
    """Return a workflow's milliseconds, and the workflows a second."""
    async with stage(config=DYNAMIC_CONFIG if tuned else None) as on:
        address = on.client.service_client.config.target_host
        async with program([sys.executable, "-m", "bench.bare", address], on.environ):
            for number in range(5):  # the first few of a new server are quick, whatever its settings
                await _run(on, f"warm-{number}")
            alone = [await _run(on, f"alone-{number}") for number in range(pace.times(40, 10))]
            return median(alone), await _rate(on, pace.times(200, 50))


async def _run(on: Stage, name: str) -> float:
    begin = time.perf_counter()
    await on.client.execute_workflow(Bare.run, id=name, task_queue=QUEUE)
    return (time.perf_counter() - begin) * 1000


async def _rate(on: Stage, count: int) -> float:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        async with places:
            await _run(on, f"many-{number}")

    begin = time.perf_counter()
    await asyncio.gather(*map(one, range(count)))
    return count / (time.perf_counter() - begin)
