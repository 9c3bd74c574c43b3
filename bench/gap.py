"""The gap between one agent's exit and the next agent's start in a work order, and the CPU of a step."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psutil

from bench.bare import QUEUE, STEPS, Bare, Moments
from bench.figure import Figure, median, percentile
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import Stage, cpu_seconds, program, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.state import StateDir

SIZES = ((100, 4.5, 28.0), (10_000, 5.2, 100.0))
"""For each size: the files of the repository, the largest allowed ratio of the gap's median to that of the bare
workflow in the same run, and the CPU that a step may take, in milliseconds."""
BATCHES = 3
MOST_SANDBOX_MS = 10.0
"""The most milliseconds that the whole sandbox, and its own network alone, may add to the gap."""
_SANDBOX = {"SEPTET_SANDBOX": "bwrap"}
_WITHOUT: Mapping[str, Mapping[str, str]] = {
    "sandbox": {"SEPTET_SANDBOX": "none"},
    "guest's own network": {**_SANDBOX, "SEPTET_GUEST_NETWORK": "open"},
}
"""The settings of a worker whose guests lack a part of the sandbox, by that part."""
_LOOK_SECONDS = 0.01


@dataclass(slots=True)
class Batch:
    """The measurements of some work orders, run one after the other."""

    gaps_ms: list[float] = field(default_factory=list)
    program_gaps_ms: list[float] = field(default_factory=list)
    """The gaps between the end of each agent's program and the start of the next: the sandbox lies in between."""
    cpu_ms: float = 0.0
    """The CPU of each step in the worker, git, supervisors and agents."""
    server_cpu_ms: float = 0.0
    """The CPU of each step in the Temporal server."""


def measure(pace: Pace) -> list[Figure]:
    """Measure repositories of both sizes, with the bare workflow for comparison."""
    return asyncio.run(_measured(pace))


async def _measured(pace: Pace) -> list[Figure]:
    figures: list[Figure] = []
    async with stage() as on:
        bare = await bare_batches(on, pace)
        for files, most_times, cpu_target in SIZES:
            origin = on.settings.state_dir / f"origin-{files}.git"
            await asyncio.to_thread(make_repository, origin, files, pace.seed, on.settings.git_env)
            batches = await _work_order_batches(on, origin, pace)
            figures += _figures(f"{files:,} files", batches, bare, most_times, cpu_target)
            if files == SIZES[0][0]:
                figures += await _costs_of_sandbox(on, origin, pace)
    return figures


async def _costs_of_sandbox(on: Stage, origin: Path, pace: Pace) -> list[Figure]:
    """Measure the gap that the sandbox and its network add, by batches in turn with and without them."""
    settings = {"whole": _SANDBOX, **_WITHOUT}
    batches: dict[str, list[Batch]] = {name: [] for name in settings}
    count = pace.times(10, 3)
    for number in range(BATCHES):
        for of, (name, environ) in enumerate(settings.items()):
            label = f"guests-{of}-{number}"
            async with worker(on, {**on.environ, **environ}) as process:
                await _work_orders(on, origin, f"{label}-warm", 1, process)
                batches[name].append(await _work_orders(on, origin, label, count, process))
    gaps = {name: min(median(batch.program_gaps_ms) for batch in each) for name, each in batches.items()}
    return [added_by(name, gaps["whole"], gaps[name]) for name in _WITHOUT]


def added_by(name: str, whole: float, without: float) -> Figure:
    """Return the gap that a part of the sandbox adds, in milliseconds."""
    note = f"between the programs, best of {BATCHES} batches, in turn with guests without it: {without:.1f} ms"
    return Figure(f"gap that the {name} adds", whole - without, "ms", MOST_SANDBOX_MS, note=note)


def _figures(
    of: str, batches: Sequence[Batch], bare: Sequence[Batch], most_times: float, cpu_target: float
) -> list[Figure]:
    best, other = best_of(batches), best_of(bare)
    note = f"best of {len(batches)} batches, {len(best.gaps_ms)} gaps each; at most {most_times} times it"
    beside = "seven activities that start /bin/true"
    p50, p95, bare_p50 = median(best.gaps_ms), percentile(best.gaps_ms, 95), median(other.gaps_ms)
    return [
        Figure(f"gap p50, {of}", p50, "ms", most_times * bare_p50, baseline=bare_p50, beside=beside, note=note),
        Figure(f"gap p95, {of}", p95, "ms", baseline=percentile(other.gaps_ms, 95), beside=beside),
        Figure(
            f"CPU of a step, {of}",
            min(batch.cpu_ms for batch in batches),
            "ms",
            cpu_target,
            baseline=min(batch.cpu_ms for batch in bare),
            beside=beside,
            note="worker and git; supervisors and agents are not its children",
        ),
        Figure(
            f"CPU of the server for a step, {of}",
            min(batch.server_cpu_ms for batch in batches),
            "ms",
            baseline=min(batch.server_cpu_ms for batch in bare),
            beside=beside,
        ),
    ]


def best_of(batches: Sequence[Batch]) -> Batch:
    """Return the batch with the smallest median: other load on a machine only adds time."""
    return min(batches, key=lambda batch: median(batch.gaps_ms))


async def _work_order_batches(on: Stage, origin: Path, pace: Pace) -> list[Batch]:
    async with worker(on) as process:
        await _work_orders(on, origin, "warm", 1, process)
        count = pace.times(10, 3)
        return [await _work_orders(on, origin, f"b{batch}", count, process) for batch in range(BATCHES)]


async def _work_orders(on: Stage, origin: Path, name: str, count: int, process: psutil.Process) -> Batch:
    orders, runs = WorkOrders(on.client), StateDir(on.settings.state_dir).runs
    batch = Batch()
    for number in range(count):
        order_id = f"wo-{origin.stem.removeprefix('origin-')}-{name}-{number}"
        order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
        await orders.start(order, order_id)
        await _opened(runs / order_id)
        before, server_before = cpu_seconds(process), cpu_seconds(on.server)
        task = await orders.wait(order_id)
        batch.cpu_ms += 1000 * (cpu_seconds(process) - before) / count / STEPS
        batch.server_cpu_ms += 1000 * (cpu_seconds(on.server) - server_before) / count / STEPS
        if task.status is not Status.COMPLETED:
            raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")
        batch.gaps_ms += gaps_ms(runs / order_id)
        batch.program_gaps_ms += program_gaps_ms(runs / order_id)
    return batch


async def _opened(runs: Path) -> None:
    """Wait until the first step is about to start its agent: opening the workspace is no part of a step."""
    while not runs.exists():  # noqa: ASYNC110, ASYNC240 -- another process makes it
        await asyncio.sleep(_LOOK_SECONDS)


def gaps_ms(runs: Path) -> list[float]:
    """Return the milliseconds between each agent's end and the next agent's start, by the supervisors' records."""
    records = [json.loads(path.read_bytes()) for path in runs.glob("*/exit.json")]
    moments = sorted(
        (datetime.fromisoformat(record["started_at"]), datetime.fromisoformat(record["ended_at"]))
        for record in records
    )
    return [(start - end).total_seconds() * 1000 for (_, end), (start, _) in pairwise(moments)]


def program_gaps_ms(runs: Path) -> list[float]:
    """Return the milliseconds from each program's printed end to the next program's printed start."""
    texts = [path.read_text(encoding="utf-8") for path in runs.glob("*/stderr.log")]
    moments = sorted([int(line) for line in text.splitlines() if line.isdecimal()] for text in texts)
    return [(after[0] - before[-1]) / 1e6 for before, after in pairwise(moments)]


async def bare_batches(on: Stage, pace: Pace) -> list[Batch]:
    """Run the bare workflow as often as work orders are run."""
    address = on.client.service_client.config.target_host
    async with program([sys.executable, "-m", "bench.bare", address], on.environ) as process:
        await _bare(on, "warm", 3, process)
        count = pace.times(10, 3)
        return [await _bare(on, f"b{batch}", count, process) for batch in range(BATCHES)]


async def _bare(on: Stage, name: str, count: int, process: psutil.Process) -> Batch:
    batch = Batch()
    before, server_before = cpu_seconds(process), cpu_seconds(on.server)
    for number in range(count):
        moments: list[Moments] = await on.client.execute_workflow(
            Bare.run, id=f"bare-{name}-{number}", task_queue=QUEUE
        )
        batch.gaps_ms += [1000 * (start - end) for (_, end), (start, _) in pairwise(moments)]
    steps = count * STEPS
    batch.cpu_ms = 1000 * (cpu_seconds(process) - before) / steps
    batch.server_cpu_ms = 1000 * (cpu_seconds(on.server) - server_before) / steps
    return batch
