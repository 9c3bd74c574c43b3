"""What a work order costs on Temporal: billable Actions by the server's own count, events, bytes of history."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from activities.attempts import pause_between_heartbeats
from bench.bare import QUEUE, Bare
from bench.figure import Figure
from bench.meter import read_actions
from bench.pace import Pace
from bench.repository import make_repository
from bench.stage import SEPTET, Stage, program, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.limits import Timeouts
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request_names import watch_id
from septet.forges.choose import forge_for
from septet.forges.forge import pull_request_number
from septet.forges.local import LocalForge
from septet.git.address import parse_address
from septet.settings import Settings

ACTIONS_TARGET: Final = 80.0
EVENTS_TARGET: Final = 65.0
AGENT_SECONDS: Final = 1600
OPEN_SECONDS: Final = 24 * 3600
_CLOCK: Final = 100
"""The agent works a hundredth of its time, and its host is asked a hundred times as often."""
_LOOK_SECONDS: Final = 1.0
"""Between looks at the pull request while they are counted."""
_COUNTED_SECONDS: Final = 12
_WATCHED_SECONDS: Final = 5
_AGENT_WATCHED_SECONDS: Final = 40
_BUDGETS: Final = {
    "SEPTET_ORDER_BUDGET": "50usd",
    "SEPTET_PROJECT_BUDGET": "100usd/day",
    "SEPTET_DAY_BUDGET": "200usd/day",
}
_OF_BUDGETS: Final = ("SignalWorkflowExecution", "message_UpdateWorkflowExecution_Acceptance")
_HEARTBEAT: Final = "RecordActivityTaskHeartbeat"
BESIDE: Final = "a bare workflow of 7 activities"


def measure(pace: Pace) -> list[Figure]:
    """Measure one work order and what follows it, and the bare workflow beside it."""
    del pace
    return asyncio.run(_measured())


async def _measured() -> list[Figure]:
    async with stage() as on:
        bare = await _bare(on)
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, 100, 7, on.settings.git_env)
        async with worker(on, _environ(on)):
            await _work_order(on, origin, "wo-warm")
            await on.client.get_workflow_handle(watch_id("wo-warm")).terminate()
            work = await _count(on, lambda: _work_order(on, origin, "wo-counted"))
            looks = await _count(on, lambda: asyncio.sleep(_COUNTED_SECONDS))
            end = await _count(on, lambda: _merge(on, origin, "wo-counted"))
        async with worker(on, {**on.environ, "SEPTET_SCRIPTED_SECONDS": str(_AGENT_WATCHED_SECONDS)}):
            watched = await _watched(on, origin)
        other = on.settings.state_dir / "other.git"
        await asyncio.to_thread(make_repository, other, 100, 7, on.settings.git_env)
        async with worker(on, {**_environ(on), **_BUDGETS}):
            budgeted = await _count(on, lambda: _work_order(on, other, "wo-budgeted"))
        events, size = await _history(on, "wo-counted")
        bare_events, bare_size = await _history(on, "bare-counted")
    return [
        _total(work, looks, end, bare),
        Figure(
            "Actions of three budgets",
            sum(budgeted[name] - work[name] for name in _OF_BUDGETS),
            "",
            note="of a work order, its project and the day: a question before each step, and what it used after",
        ),
        Figure("events of a work order", events, "", EVENTS_TARGET, baseline=bare_events, beside=BESIDE),
        Figure("history of a work order", size, "bytes", baseline=bare_size, beside=BESIDE),
        Figure("an open `septet watch`", watched, "Actions a minute", 0.0, note="while an agent works"),
    ]


def _total(work: Counter[str], looks: Counter[str], end: Counter[str], bare: Counter[str]) -> Figure:
    """Return the Actions of the whole: what was measured on a fast clock, put on the real one."""
    heartbeats, seconds = _heartbeats(work), OPEN_SECONDS / Settings().longest_look_seconds
    looked = round(sum(looks.values()) * seconds * _LOOK_SECONDS / _COUNTED_SECONDS)
    parts = {**work, _HEARTBEAT: heartbeats, "looks of a day": looked, "the merge": sum(end.values())}
    told = ", ".join(
        f"{number} {name}" for name, number in sorted(parts.items(), key=lambda part: -part[1]) if number
    )
    note = (
        f"{AGENT_SECONDS:,} agent-seconds, a pull request open for a day; measured at 1/{_CLOCK} of the time, "
        f"heartbeats and looks by their pauses: {told}"
    )
    return Figure(
        "Actions of a work order", sum(parts.values()), "", ACTIONS_TARGET, baseline=sum(bare.values()),
        beside=BESIDE, note=note,
    )  # fmt: skip


def _heartbeats(work: Counter[str]) -> int:
    """Return how many heartbeats arrive: the first of each activity, and one after each pause."""
    first = min(work[_HEARTBEAT], work["ScheduleActivityTask"])
    pause = pause_between_heartbeats(timedelta(seconds=Timeouts().heartbeat_seconds))
    return first + int(AGENT_SECONDS / pause.total_seconds())


def _environ(on: Stage) -> dict[str, str]:
    """Return the environment of a worker whose clock is fast."""
    return {
        **on.environ,
        "SEPTET_SCRIPTED_SECONDS": str(AGENT_SECONDS / _CLOCK),
        "SEPTET_PROBE_SECONDS": str(on.settings.probe_seconds / _CLOCK),
        "SEPTET_LOOK_SECONDS": str(_LOOK_SECONDS),
        "SEPTET_LONGEST_LOOK_SECONDS": str(_LOOK_SECONDS),
    }


async def _count(on: Stage, work: Callable[[], Awaitable[object]]) -> Counter[str]:
    """Return the Actions that some work takes, by type."""
    before = await read_actions(on.metrics)
    await work()
    return await read_actions(on.metrics) - before


async def _bare(on: Stage) -> Counter[str]:
    address = on.client.service_client.config.target_host
    async with program([sys.executable, "-m", "bench.bare", address], on.environ):
        return await _count(on, lambda: on.client.execute_workflow(Bare.run, id="bare-counted", task_queue=QUEUE))


async def _work_order(on: Stage, origin: Path, order_id: str) -> None:
    """Carry out a work order; nobody asks how it goes on."""
    orders = WorkOrders(on.client)
    order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
    await orders.put(order, order_id)
    task = await orders.wait(order_id)
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")


async def _merge(on: Stage, origin: Path, order_id: str) -> None:
    """Merge a work order's pull request, and wait until that is seen."""
    forge = forge_for(parse_address(str(origin), home=Path.home()), on.settings)
    task = await WorkOrders(on.client).get(order_id)
    if not isinstance(forge, LocalForge) or task.pr_url is None:
        raise TypeError(f"{order_id} has no pull request on a local forge.")
    await asyncio.to_thread(forge.merge_pull_request, pull_request_number(task.pr_url))
    await on.client.get_workflow_handle(watch_id(order_id)).result()


async def _watched(on: Stage, origin: Path) -> float:
    """Return the Actions a minute that an open watch takes beside those of the work order."""
    order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
    await WorkOrders(on.client).put(order, "wo-watched")
    alone = await _count(on, lambda: asyncio.sleep(_WATCHED_SECONDS))
    async with _watching(on, "wo-watched"):
        beside = await _count(on, lambda: asyncio.sleep(_WATCHED_SECONDS))
    await on.client.get_workflow_handle("wo-watched").cancel()
    return 60 * max(beside["QueryWorkflow"] - alone["QueryWorkflow"], 0) / _WATCHED_SECONDS


@asynccontextmanager
async def _watching(on: Stage, order_id: str) -> AsyncIterator[None]:
    """Have a work order watched for as long as the block lasts, from the first thing that the watch has said."""
    async with program([str(SEPTET), "watch", order_id, "--json"], on.environ):
        yield


async def _history(on: Stage, workflow_id: str) -> tuple[int, int]:
    """Return the events of a workflow, and their bytes."""
    events = [event async for event in on.client.get_workflow_handle(workflow_id).fetch_history_events()]
    return len(events), sum(event.ByteSize() for event in events)
