"""The cost of following two hundred simultaneous agents, each of which prints an event every second."""

import asyncio
from pathlib import Path
from typing import Final

import psutil

from bench.figure import Figure
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, own_percents, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput

AGENT: Final = Path(__file__).with_name("ticking_agent.sh")
ENGINE_TARGET_PERCENT: Final = 15.0
SERVER_TARGET_PERCENT: Final = 10.0
MEMORY_TARGET_MB: Final = 170.0
_AGENT_SECONDS: Final = 900
"""Longer than the whole measurement, which cancels the agents at its end."""
_AT_ONCE: Final = 20
_WITHIN_SECONDS: Final = 600.0
_SETTLE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5
_MB: Final = 1_000_000
_BESIDE: Final = "without an agent"


def measure(pace: Pace) -> list[Figure]:
    """Measure worker and server before the first agent, and while all agents work and nothing else happens."""
    return asyncio.run(_measured(pace.times(200, 50), pace.times(30, 15)))


async def _measured(count: int, seconds: int) -> list[Figure]:
    async with stage() as on:
        environ = {
            **on.environ,
            "SEPTET_SCRIPTED_PATH": str(AGENT),
            "SEPTET_SCRIPTED_SECONDS": str(_AGENT_SECONDS),
            "SEPTET_MAX_AGENTS": str(count),
        }
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, 100, 0, on.settings.git_env)
        async with worker(on, environ) as engine:
            idle = await _taken(on, engine, seconds)
            names = [f"wo-{number}" for number in range(count)]
            await _start(on, str(origin), names)
            await _until_speaking(on, count)
            busy = await _taken(on, engine, seconds)
            await _end(on, names)
    targets = {
        "the worker": ("% of a core", ENGINE_TARGET_PERCENT),
        "the server": ("% of a core", SERVER_TARGET_PERCENT),
        "the worker's memory (RSS)": ("MB", MEMORY_TARGET_MB),
    }
    return [
        Figure(
            f"{count} agents, an event a second: {what}", value, unit, target, baseline=alone, beside=_BESIDE,
            note=f"over {seconds} s",
        )
        for (what, (unit, target)), value, alone in zip(targets.items(), busy, idle, strict=True)
    ]  # fmt: skip


async def _taken(on: Stage, engine: psutil.Process, seconds: int) -> tuple[float, float, float]:
    """Return the use of worker and server in percent of a core, and the worker's memory in megabytes."""
    await asyncio.sleep(_SETTLE_SECONDS)
    engine_percent, server_percent = await own_percents((engine, on.server), seconds)
    return engine_percent, server_percent, engine.memory_info().rss / _MB


async def _start(on: Stage, origin: str, names: list[str]) -> None:
    orders, places = WorkOrders(on.client), asyncio.Semaphore(_AT_ONCE)

    async def start(name: str) -> None:
        async with places:
            await orders.start(
                WorkOrderInput(repository=origin, title="Tell that it is done", agent="scripted"), name
            )

    await asyncio.gather(*map(start, names))


async def _until_speaking(on: Stage, count: int) -> None:
    """Wait until all agents have printed an event.

    Raises:
        RuntimeError: A work order ended before.
    """
    runs = on.settings.state_dir / "runs"
    async with asyncio.timeout(_WITHIN_SECONDS):
        while await asyncio.to_thread(_count_streams, runs) < count:
            if (await on.client.count_workflows('WorkflowType="WorkOrder" AND ExecutionStatus!="Running"')).count:
                raise RuntimeError("A work order ended before all agents worked.")
            await asyncio.sleep(_LOOK_SECONDS)


def _count_streams(runs: Path) -> int:
    return sum(path.stat().st_size > 0 for path in runs.glob("*/1-*/stdout.jsonl"))


async def _end(on: Stage, names: list[str]) -> None:
    """Cancel all work orders, which stops their agents."""
    orders, places = WorkOrders(on.client), asyncio.Semaphore(_AT_ONCE)

    async def end(name: str) -> None:
        async with places:
            await orders.cancel_and_wait(name)
            await orders.wait(name)

    async with asyncio.timeout(_WITHIN_SECONDS):
        await asyncio.gather(*map(end, names))
