"""The cost of a work order on Temporal: billable Actions by the server's own count, events, bytes of histories."""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from activities.host.running_attempts import pause_between_heartbeats
from bench.bare import QUEUE, Bare
from bench.counted_order import carry_out, carry_out_and_tell, merge, watching
from bench.figure import Figure
from bench.histories import read_history, read_kept
from bench.meter import read_actions
from bench.pace import Pace
from bench.receiver import receiver
from bench.repository import make_repository
from bench.stage import Stage, program, stage, worker
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import watch_id
from septet.contracts.order import Timeouts, WorkOrderInput
from septet.settings import Settings

ACTIONS_TARGET: Final = 80.0
EVENTS_TARGET: Final = 65.0
KEPT_TARGET_KB: Final = 55.0
BUDGETS_TARGET: Final = 46.0
BUDGETS_KEPT_TARGET_KB: Final = 45.0
NOTIFICATION_TARGET: Final = 5.0
NOTIFICATION_KEPT_TARGET_KB: Final = 10.0
AGENT_SECONDS: Final = 1600
OPEN_SECONDS: Final = 24 * 3600
_CLOCK: Final = 100
"""The agent works a hundredth of its time, and its host is probed a hundred times as often."""
_LOOK_SECONDS: Final = 1.0
"""The seconds between polls of the pull request while they are counted."""
_COUNTED_SECONDS: Final = 12
_WATCHED_SECONDS: Final = 5
_AGENT_WATCHED_SECONDS: Final = 40
_BUDGETS: Final = {
    "SEPTET_ORDER_BUDGET": "50usd",
    "SEPTET_PROJECT_BUDGET": "100usd/day",
    "SEPTET_DAY_BUDGET": "200usd/day",
}
_HEARTBEAT: Final = "RecordActivityTaskHeartbeat"
BESIDE: Final = "a bare workflow of 7 activities"
_OWN: Final = "the work order's own history"
_KB: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The cost of some work."""

    actions: Counter[str]
    """The Actions by type, as the server counts them."""
    kept: Counter[str]
    """The bytes of history by type of workflow, of all workflows during the work."""


def measure(pace: Pace) -> list[Figure]:
    """Measure a work order and its follow-up, and the bare workflow for comparison."""
    del pace
    return asyncio.run(_measured())


async def _measured() -> list[Figure]:
    async with stage() as on:
        bare = await _bare(on)
        origin = on.settings.state_dir / "origin.git"
        await asyncio.to_thread(make_repository, origin, 100, 7, on.settings.git_env)
        async with worker(on, _environ(on)):
            await carry_out(on, origin, "wo-warm")
            await on.client.get_workflow_handle(watch_id("wo-warm")).terminate()
            work = await _take(on, lambda: carry_out(on, origin, "wo-counted"))
            looks = await _take(on, lambda: asyncio.sleep(_COUNTED_SECONDS))
            end = await _take(on, lambda: merge(on, origin, "wo-counted"))
        async with worker(on, {**on.environ, "SEPTET_SCRIPTED_SECONDS": str(_AGENT_WATCHED_SECONDS)}):
            watched = await _watched(on, origin)
        other = on.settings.state_dir / "other.git"  # the first origin has the change by now
        await asyncio.to_thread(make_repository, other, 100, 7, on.settings.git_env)
        with receiver() as (address, received):
            telling = {"SEPTET_NOTIFY_URL": address, "SEPTET_NOTIFY_SECRET": "of-the-bench"}
            async with worker(on, on.environ | telling):
                await carry_out_and_tell(on, other, "wo-warm-told", received)
                told = await _take(on, lambda: carry_out_and_tell(on, other, "wo-told", received))
        async with worker(on, on.environ | _BUDGETS):  # last: every later work order uses these accounts
            await carry_out(on, other, "wo-warm-budgeted")
            budgeted = await _take(on, lambda: carry_out(on, other, "wo-budgeted"))
        events, size = await read_history(on.client.get_workflow_handle("wo-counted"))
        budgeted_events, _ = await read_history(on.client.get_workflow_handle("wo-budgeted"))
        bare_events, bare_size = await read_history(on.client.get_workflow_handle("bare-counted"))
    return [
        _total(work.actions, looks.actions, end.actions, bare.actions),
        _more("three budgets", budgeted, work, BUDGETS_TARGET, "of a work order, its project and the day"),
        _more("a notification", told, work, NOTIFICATION_TARGET, "that a work order is completed"),
        Figure("events of a work order", events, "", EVENTS_TARGET, baseline=bare_events, beside=BESIDE),
        Figure(
            "events of a work order with three budgets", budgeted_events, "", events, baseline=events,
            beside="without a budget", note="of its own history: accounts have theirs",
        ),
        Figure("history of a work order", size / _KB, "kB", baseline=bare_size / _KB, beside=BESIDE),
        _kept("histories of a work order", work.kept + looks.kept + end.kept, KEPT_TARGET_KB, size, _OWN),
        _kept("histories of three budgets", budgeted.kept - work.kept, BUDGETS_KEPT_TARGET_KB, size, _OWN),
        _kept("histories of a notification", told.kept - work.kept, NOTIFICATION_KEPT_TARGET_KB, size, _OWN),
        Figure("an open `septet watch`", watched, "Actions a minute", 0.0, note="while an agent works"),
    ]  # fmt: skip


def _more(name: str, more: Taken, work: Taken, target: float, note: str) -> Figure:
    """Return the Actions beyond those of a work order without the feature."""
    actions = more.actions - work.actions
    del actions[_HEARTBEAT]  # their number follows from the agent's time
    return Figure(f"Actions of {name}", actions.total(), "", target, note=f"{note}: {_told(actions)}")


def _kept(name: str, kept: Counter[str], target: float, own: int, beside: str) -> Figure:
    told = _told({kind: round(size / _KB, 1) for kind, size in kept.items()})
    return Figure(name, kept.total() / _KB, "kB", target, baseline=own / _KB, beside=beside, note=told)


def _told(parts: Mapping[str, float]) -> str:
    """Return the parts of a sum, largest first."""
    return ", ".join(
        f"{number} {name}" for name, number in sorted(parts.items(), key=lambda part: -part[1]) if number
    )


def _total(work: Counter[str], looks: Counter[str], end: Counter[str], bare: Counter[str]) -> Figure:
    """Return the Actions of the whole, converted from the fast clock to the real clock."""
    heartbeats, seconds = _heartbeats(work), OPEN_SECONDS / Settings().longest_look_seconds
    looked = round(sum(looks.values()) * seconds * _LOOK_SECONDS / _COUNTED_SECONDS)
    parts = {**work, _HEARTBEAT: heartbeats, "looks of a day": looked, "the merge": sum(end.values())}
    note = (
        f"{AGENT_SECONDS:,} agent-seconds, a pull request open for a day; measured at 1/{_CLOCK} of the time, "
        f"heartbeats and looks by their pauses: {_told(parts)}"
    )
    return Figure(
        "Actions of a work order", sum(parts.values()), "", ACTIONS_TARGET, baseline=sum(bare.values()),
        beside=BESIDE, note=note,
    )  # fmt: skip


def _heartbeats(work: Counter[str]) -> int:
    """Return the number of heartbeats that arrive: the first of each activity, and one after each pause."""
    first = min(work[_HEARTBEAT], work["ScheduleActivityTask"])
    pause = pause_between_heartbeats(timedelta(seconds=Timeouts().heartbeat_seconds))
    return first + int(AGENT_SECONDS / pause.total_seconds())


def _environ(on: Stage) -> dict[str, str]:
    """Return the environment of a worker with a fast clock."""
    return {
        **on.environ,
        "SEPTET_SCRIPTED_SECONDS": str(AGENT_SECONDS / _CLOCK),
        "SEPTET_PROBE_SECONDS": str(on.settings.probe_seconds / _CLOCK),
        "SEPTET_LOOK_SECONDS": str(_LOOK_SECONDS),
        "SEPTET_LONGEST_LOOK_SECONDS": str(_LOOK_SECONDS),
    }


async def _take(on: Stage, work: Callable[[], Awaitable[object]]) -> Taken:
    """Return the cost of some work."""
    actions, kept = await read_actions(on.metrics), await read_kept(on.client)
    await work()
    return Taken(await read_actions(on.metrics) - actions, await read_kept(on.client) - kept)


async def _bare(on: Stage) -> Taken:
    address = on.client.service_client.config.target_host
    async with program([sys.executable, "-m", "bench.bare", address], on.environ):
        return await _take(on, lambda: on.client.execute_workflow(Bare.run, id="bare-counted", task_queue=QUEUE))


async def _watched(on: Stage, origin: Path) -> float:
    """Return the Actions a minute that an open watch adds to those of the work order."""
    order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
    await WorkOrders(on.client).put(order, "wo-watched")
    alone = (await _take(on, lambda: asyncio.sleep(_WATCHED_SECONDS))).actions
    async with watching(on, "wo-watched"):
        beside = (await _take(on, lambda: asyncio.sleep(_WATCHED_SECONDS))).actions
    await on.client.get_workflow_handle("wo-watched").cancel()
    return 60 * max(beside["QueryWorkflow"] - alone["QueryWorkflow"], 0) / _WATCHED_SECONDS
