"""The cost of a worker without work."""

import asyncio
import sys

import psutil

from bench.figure import Figure
from bench.pace import Pace
from bench.stage import cpu_seconds, program, stage, worker

MEMORY_TARGET_MB = 130.0
CPU_TARGET_PERCENT = 2.0
_SETTLE_SECONDS = 3.0
MB = 1_000_000


def measure(pace: Pace) -> list[Figure]:
    """Measure `septet worker` with its waiting supervisor, and a worker of a bare workflow for comparison."""
    return asyncio.run(_measured(pace))


async def _measured(pace: Pace) -> list[Figure]:
    seconds = pace.times(30, 20)
    async with stage() as on:
        async with worker(on) as process:
            memory, percent = await _idle(process, seconds)
        address = on.client.service_client.config.target_host
        async with program([sys.executable, "-m", "bench.bare", address], on.environ) as process:
            bare_memory, bare_percent = await _idle(process, seconds)
    beside, note = "a worker of a bare workflow", f"with the supervisor that waits, over {seconds} s"
    return [
        Figure("memory (RSS)", memory, "MB", MEMORY_TARGET_MB, baseline=bare_memory, beside=beside, note=note),
        Figure("CPU", percent, "% of a core", CPU_TARGET_PERCENT, baseline=bare_percent, beside=beside, note=note),
    ]


async def _idle(process: psutil.Process, seconds: int) -> tuple[float, float]:
    """Return the megabytes and the percent of a core of a process with its children."""
    await asyncio.sleep(_SETTLE_SECONDS)
    family = [process, *process.children(recursive=True)]
    before = sum(cpu_seconds(member) for member in family)
    await asyncio.sleep(seconds)
    after = sum(cpu_seconds(member) for member in family)
    return sum(member.memory_info().rss for member in family) / MB, 100 * (after - before) / seconds
