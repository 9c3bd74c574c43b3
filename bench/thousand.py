"""A pipeline of 1,000 issues: the time of an issue at the end and at first, and the sizes of all histories.

The group is measured only if it is named: it takes most of an hour.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
from temporalio.client import Client, WorkflowHistoryEventFilterType

from bench.figure import Figure, median
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import SEPTET, Stage, cpu_seconds, stage, worker
from septet.pipelines.inputs import PipelineInput, PipelineIssue
from septet.pipelines.views import IssueStatus, PipelineView

MOST_EVENTS: Final = 51_200 // 10
"""A tenth of Temporal's limit of a history, like `MOST_BYTES`."""
MOST_BYTES: Final = 50 * 1024 * 1024 // 10
MOST_PAYLOAD_BYTES: Final = 2 * 1024 * 1024
"""The server's limit of a payload."""
_GROWS_AT_MOST: Final = 1.25
_ID: Final = "pl-thousand"
_FILES: Final = 100
_LOOK_SECONDS: Final = 5.0
_SAID_EVERY: Final = 20
_MIB: Final = 1024 * 1024


@dataclass(slots=True)
class Watched:
    """The observations of a running pipeline."""

    closed: list[float] = field(default_factory=list)
    """The seconds from the start to the end of each issue, in order."""
    cpu: list[tuple[int, float]] = field(default_factory=list)
    """For each sample the closed issues, and the CPU seconds of the worker and its children."""
    rss_bytes: list[int] = field(default_factory=list)
    """The worker's memory in bytes, by sample."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a pipeline's histories and payloads."""

    runs: int
    events: int
    """The events of its largest run, as `bytes` are."""
    bytes: int
    payload_bytes: int
    """The largest payload in bytes."""
    payload_in: str


def measure(pace: Pace) -> list[Figure]:
    """Measure a pipeline of issues whose steps take no time."""
    return asyncio.run(_measured(pace.issues or pace.times(1000, 120), pace.seed))


async def _measured(count: int, seed: int) -> list[Figure]:
    async with stage() as on:
        origin = await asyncio.to_thread(
            make_repository, on.settings.state_dir / "origin.git", _FILES, seed, on.settings.git_env
        )
        async with worker(on, _environ(on)) as process:
            before = await asyncio.to_thread(_disk_bytes, on.settings.state_dir)
            watched = await _carried_out(on.client, origin, count, process)
            disk = await asyncio.to_thread(_disk_bytes, on.settings.state_dir) - before
            asked = time.perf_counter()
            await on.client.get_workflow_handle(_ID).query("pipeline")
            asked = time.perf_counter() - asked
        return _figures(watched, await _sizes(on.client), disk, asked)


async def _carried_out(client: Client, origin: Path, count: int, process: psutil.Process) -> Watched:
    issues = tuple(
        PipelineIssue(
            id=f"i{number:04}", title=f"Say thing {number}", body=f"Write it to `things/{number:04}.txt`."
        )
        for number in range(count)
    )
    given = PipelineInput(repository=str(origin), issues=issues, agent="scripted")
    handle = await client.start_workflow("Pipeline", given, id=_ID, task_queue="septet", result_type=PipelineView)
    watched, begun = Watched(), time.perf_counter()
    result = asyncio.create_task(handle.result())
    while not result.done():
        await asyncio.wait({result}, timeout=_LOOK_SECONDS)
        await _look(client, watched, time.perf_counter() - begun, process)
    if lost := [issue for issue in (await result).issues if issue.status is not IssueStatus.COMPLETED]:
        raise RuntimeError(f"{lost[0].order_id} is {lost[0].status.value}: {lost[0].error}")
    return watched


async def _look(client: Client, watched: Watched, seconds: float, process: psutil.Process) -> None:
    told = await client.count_workflows("WorkflowType='WorkOrder' AND ExecutionStatus!='Running'")
    new = told.count - len(watched.closed)
    before = watched.closed[-1] if watched.closed else 0.0
    watched.closed += [before + (seconds - before) * (each + 1) / new for each in range(new)]
    watched.cpu.append((told.count, cpu_seconds(process)))
    watched.rss_bytes.append(process.memory_info().rss)
    if told.count // _SAID_EVERY != (told.count - new) // _SAID_EVERY:
        cpu, rss = watched.cpu[-1][1], watched.rss_bytes[-1] // _MIB
        print(f"{told.count} issues, {seconds:.0f} s, {cpu:.0f} s of CPU, {rss} MiB", file=sys.stderr)


async def _sizes(client: Client) -> Sizes:
    """Return the sizes of the histories of a pipeline's runs."""
    events, sizes, largest = [], [], (0, "")
    async for run in client.list_workflows(f"WorkflowId='{_ID}'"):
        described = await client.get_workflow_handle(_ID, run_id=run.run_id).describe()
        events.append(described.raw_description.workflow_execution_info.history_length)
        sizes.append(described.raw_description.workflow_execution_info.history_size_bytes)
        async for event in _events(client, run.run_id):
            largest = max(largest, *_payloads(event), (0, ""))
    return Sizes(len(events), max(events), max(sizes), *largest)


def _events(client: Client, run_id: str) -> AsyncIterator[Any]:
    handle = client.get_workflow_handle(_ID, run_id=run_id)
    return handle.fetch_history_events(event_filter_type=WorkflowHistoryEventFilterType.ALL_EVENT)


def _payloads(event: Any) -> list[tuple[int, str]]:  # noqa: ANN401 -- protobuf's message
    """Return the size of all payloads of an event, an upper bound of each, with the event's kind."""
    attributes = event.WhichOneof("attributes") or ""
    return [(getattr(event, attributes).ByteSize(), attributes.removesuffix("_event_attributes"))]


def _figures(watched: Watched, sizes: Sizes, disk: int, asked: float) -> list[Figure]:
    count = len(watched.closed)
    first, last = _cpu(watched.cpu, 0, count // 2), _cpu(watched.cpu, count // 2, count)
    named = f"{count} issues"
    wall = [_pace(watched.closed[: count // 2]), _pace(watched.closed[count // 2 :])]
    return [
        Figure(
            f"{named}: CPU of worker and git for one of the second half", last, "s", _GROWS_AT_MOST * first,
            baseline=first, beside="one of the first half",
            note=f"on the clock {wall[1]:.2f} s and {wall[0]:.2f} s; {watched.closed[-1]:.0f} s in all",
        ),
        Figure(
            f"{named}: the longest history of {sizes.runs} runs", sizes.events, "events", MOST_EVENTS,
            note="a tenth of what Temporal allows",
        ),
        Figure(
            f"{named}: the largest history", sizes.bytes / _MIB, "MiB", MOST_BYTES / _MIB,
            note="a tenth of what Temporal allows",
        ),
        Figure(
            f"{named}: the largest event", sizes.payload_bytes / 1024, "KiB", MOST_PAYLOAD_BYTES / 1024,
            note=f"{sizes.payload_in}; Temporal allows a payload no more",
        ),
        Figure(
            f"{named}: the worker's memory", max(watched.rss_bytes) / _MIB, "MiB",
            note=f"{median(watched.rss_bytes) / _MIB:.0f} MiB p50",
        ),
        Figure(f"{named}: on disk, for each issue", disk / count / 1024, "KiB", note="without the database"),
        Figure(f"{named}: the answer to the query", asked * 1000, "ms"),
    ]  # fmt: skip


def _pace(closed: Sequence[float]) -> float:
    """Return the seconds from one end to the next."""
    return (closed[-1] - closed[0]) / max(len(closed) - 1, 1)


def _cpu(seen: Sequence[tuple[int, float]], after: int, up_to: int) -> float:
    """Return the CPU seconds of an issue, between two counts of closed issues."""
    stretch = [look for look in seen if after <= look[0] <= up_to]
    (first, before), (last, then) = stretch[0], stretch[-1]
    return (then - before) / max(last - first, 1)


def _environ(on: Stage) -> dict[str, str]:
    """Return the worker's environment, without polls of open pull requests, whose cost grows with their wait."""
    scenario = on.settings.state_dir / "scenario.json"
    scenario.write_text(json.dumps({}), encoding="utf-8")
    return {
        **on.environ,
        "SEPTET_SCRIPTED_PATH": str(SEPTET.with_name("septet-scripted-agent")),
        "SEPTET_SCRIPTED_SCENARIO": str(scenario),
        "SEPTET_LOOK_SECONDS": "7200",
        "SEPTET_LONGEST_LOOK_SECONDS": "7200",
        "SEPTET_SCRIPTED_HOME": str(on.settings.state_dir / "scripted"),
    }


def _disk_bytes(folder: Path) -> int:
    """Return the bytes of a folder on disk, without the server's database."""
    found = 0
    for root, _, names in os.walk(folder):
        for name in names:
            if ".db" not in name:
                found += (Path(root) / name).lstat().st_blocks * 512 if (Path(root) / name).exists() else 0
    return found
