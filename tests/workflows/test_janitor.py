"""The janitor's workflow and schedule on a real server, over a real host."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.around import Call, around
from fakes.repositories import Origin, make_origin
from fakes.running import replayed, result_of
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import (
    Client,
    CreateScheduleInput,
    ScheduleHandle,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from activities.workspaces.hosts import SweepHost, find_owner
from activities.workspaces.workspaces import WorkspaceActivities
from septet.contracts.names import FOLLOWS, watch_id
from septet.contracts.steps import SweepCall
from septet.contracts.workspace import OpenWorkspace
from septet.janitor.terms import SweepReport
from workers.registry import Parts, parts_of
from workers.watching.schedules import PASSES, schedule_id, schedule_janitor
from workflows.janitor import Janitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = make_origin(tmp_path / "origins")
    origin.push({"README.md": "# Sample\n"})
    return origin


@pytest_asyncio.fixture(loop_scope="session")
async def host(tmp_path: Path) -> AsyncIterator[Parts]:
    """A host with its own queues, which keeps workspaces and runs for no time."""
    queue = f"q-{uuid.uuid4().hex[:8]}"
    settings = settings_of(tmp_path, task_queue=queue, keep_workspaces_days=0.0, keep_runs_days=0.0)
    async with parts_of(settings) as parts:
        yield parts


def worker(client: Client, host: Parts, days_ahead: float = 0.0) -> Worker:
    """Return a worker for the host's janitor, with a clock that may be ahead."""
    sweep = SweepHost(host.host, lambda: datetime.now(UTC) + timedelta(days=days_ahead))
    return Worker(client, task_queue=host.host.task_queue, activities=[sweep.run])


async def swept(client: Client, host: Parts, way: str = "") -> SweepReport:
    queue = host.host.settings.task_queue
    async with Worker(client, task_queue=queue, workflows=[Janitor]):
        handle = await client.start_workflow(
            Janitor.run, host.host.task_queue, id=uuid.uuid4().hex, task_queue=queue
        )
        try:
            report: SweepReport = await result_of(handle)
        finally:
            await replayed(handle, way)
    return report


async def opened(client: Client, host: Parts, origin: Origin, *, closed: bool) -> str:
    """Open the workspace of a running or closed work order that the server knows, and return its id."""
    order_id = f"wo-{uuid.uuid4().hex[:8]}"
    handle = await client.start_workflow("WorkOrder", id=order_id, task_queue="nobody-serves-this")
    asked = OpenWorkspace(work_order_id=order_id, repository=str(origin.bare), title="T", agent="scripted")
    await ActivityEnvironment().run(WorkspaceActivities(host.host).open_workspace, asked)
    if closed:
        await handle.terminate()
    return order_id


async def test_a_pass_removes_what_closed_and_keeps_what_runs(client: Client, host: Parts, origin: Origin) -> None:
    """The first pass on a host removes nothing; the next pass queries the server and removes the closed work orders."""
    running = await opened(client, host, origin, closed=False)
    closed = await opened(client, host, origin, closed=True)
    workspaces = host.host.state.workspaces
    async with worker(client, host):
        first = await swept(client, host)
        assert (first.removed, first.host) == ((), host.host.id)
        assert "first pass" in first.note
        assert (workspaces / closed).exists()
        second = await swept(client, host, "janitor/swept")
    assert [thing.name for thing in second.removed if thing.kind == "workspace"] == [closed]
    assert not (workspaces / closed).exists()
    assert (workspaces / running / "README.md").exists()
    await client.get_workflow_handle(running).terminate()


async def test_a_clock_that_jumped_removes_nothing(client: Client, host: Parts, origin: Origin) -> None:
    """On a host whose clock is a year ahead of the server's clock, no workspace counts as old."""
    closed = await opened(client, host, origin, closed=True)
    async with worker(client, host, days_ahead=400.0):
        await swept(client, host)
        report = await swept(client, host)
    assert (report.removed, "clock" in report.note) == ((), True)
    assert (host.host.state.workspaces / closed).exists()


async def test_a_host_that_cannot_sweep_is_named_in_the_report(client: Client, host: Parts) -> None:
    """The pass completes, and its report has the reason."""

    @activity.defn(name="sweep_host")
    async def sweep_host(_call: SweepCall) -> SweepReport:
        raise ApplicationError("The disk is read-only.", type="DiskReadOnly", non_retryable=True)

    async with Worker(client, task_queue=host.host.task_queue, activities=[sweep_host]):
        report = await swept(client, host, "janitor/not-swept")
    assert report.note == "The host was not swept: DiskReadOnly: The disk is read-only."


async def test_each_setting_says_how_long_a_thing_is_kept(client: Client, host: Parts, origin: Origin) -> None:
    """Ignored files over the limit keep their workspace until they may be dropped; then old snapshots and mirrors go."""
    origin.push({".gitignore": "*.log\n"})
    closed = await opened(client, host, origin, closed=True)
    workspace = host.host.state.workspaces / closed
    (workspace / "big.log").write_bytes(os.urandom(4096))
    removed = []
    for own in (
        {},
        {"ignored_limit_mib": 0},
        {"ignored_limit_mib": 0, "drop_ignored_files": True},
        {"keep_mirrors_days": 0.0},
        {"keep_snapshots_days": 0.0},
        {"keep_mirrors_days": 0.0, "keep_snapshots_days": 0.0},
    ):
        async with parts_of(host.host.settings.model_copy(update=own)) as parts, worker(client, parts):
            removed.append(sorted({thing.kind for thing in (await swept(client, parts)).removed}))
    assert removed == [[], [], ["workspace"], [], ["snapshot"], ["mirror"]]


async def test_the_schedule_of_a_host_is_created_once(client: Client, host: Parts) -> None:
    """A second worker sends no creation, whose refusal the server would keep for months; a trigger starts a pass."""
    created: list[str] = []

    async def create(really: Call, schedule: CreateScheduleInput) -> Any:
        created.append(schedule.id)
        return await really(schedule)

    seen, settings = around(client, create_schedule=create), host.host.settings
    for _ in range(3):
        await schedule_janitor(seen, settings, host.host.id, host.host.task_queue)
    assert created == [schedule_id(host.host.id)]
    handle = client.get_schedule_handle(schedule_id(host.host.id))
    async with worker(client, host), Worker(client, task_queue=settings.task_queue, workflows=[Janitor]):
        await handle.trigger()
        described = await wait_until(handle.describe, lambda seen: seen.info.recent_actions)
        async with asyncio.timeout(60):
            action = described.info.recent_actions[0].action
            pass_id: str = action.workflow_id  # type: ignore[attr-defined]
            report: SweepReport = await client.get_workflow_handle(pass_id, result_type=SweepReport).result()
    assert report.host == host.host.id
    await handle.delete()


async def test_the_schedule_of_a_host_runs_out_unless_it_is_renewed(client: Client, host: Parts) -> None:
    """The schedule of a lost host runs out; a living host renews it, and keeps a person's pause."""
    settings = host.host.settings
    await schedule_janitor(client, settings, host.host.id, host.host.task_queue)
    handle = client.get_schedule_handle(schedule_id(host.host.id))
    made = (await handle.describe()).schedule.state
    assert (made.limited_actions, made.remaining_actions) == (True, PASSES)

    def by_a_person(found: ScheduleUpdateInput) -> ScheduleUpdate:
        found.description.schedule.state.remaining_actions = 1
        found.description.schedule.state.limited_actions = True
        return ScheduleUpdate(found.description.schedule)

    await handle.update(by_a_person)
    await _state(handle, lambda state: state.remaining_actions == 1)  # the server applies a change a moment later
    await handle.pause(note="not now")
    await _state(handle, lambda state: state.paused)
    await schedule_janitor(client, settings, host.host.id, host.host.task_queue)
    renewed = await _state(handle, lambda state: state.remaining_actions == PASSES)
    assert (renewed.paused, renewed.note) == (True, "not now")
    await handle.delete()


async def _state(handle: ScheduleHandle, wanted: Callable[[ScheduleState], bool]) -> ScheduleState:
    """Wait until a schedule is in a wanted state, and return the state."""
    described = await wait_until(handle.describe, lambda seen: wanted(seen.schedule.state))
    return described.schedule.state


async def test_the_lanes_of_a_pipeline_that_runs_are_nobodys_to_sweep(client: Client) -> None:
    """A running pipeline's lane counts as running; a name that the server does not know is unknown."""
    handle = await client.start_workflow("Pipeline", {}, id="pl-swept", task_queue="nobody-works-here")
    for lane in ("pl-swept-planner", "pl-swept-executor-2"):
        assert (await find_owner(client, lane)).status == "running"
    await handle.terminate()
    closed = await find_owner(client, "pl-swept-planner")
    assert (closed.status, closed.closed_at is not None) == ("closed", True)
    assert (await find_owner(client, "pl-nobody-planner")).status == "unknown"


async def test_a_followed_workspace_stays_when_the_server_has_forgotten_its_work_order(client: Client) -> None:
    """A pull request may be open for longer than the retention; while an agent follows it, the workspace stays."""
    order_id = f"wo-{uuid.uuid4().hex[:8]}"
    queue = "nobody-works-here"
    watch = await client.start_workflow(
        "PullRequest", id=watch_id(order_id), task_queue=queue, memo={FOLLOWS: True}
    )
    assert (await find_owner(client, order_id)).status == "running"
    await watch.terminate()
    assert (await find_owner(client, order_id)).status == "unknown"
