"""A host that stays away for days, and a usage limit of a month, on a server that skips time."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fakes.activities import Doubles, done, not_yet
from fakes.lost_hosts import on_a_dead_host
from fakes.running import result_of, start, worker_of
from fakes.skipped_time import skipping_time
from temporalio import activity, workflow
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from septet.contracts.names import Status, Step
from septet.contracts.order import Timeouts
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task, TaskError
from septet.contracts.workspace import END_WORK, LIVENESS, HostSilence, OpenWorkspace
from workflows.hosts.host_watch import HostWatch

AWAY = timedelta(days=2)
MOST_EVENTS = 250
"""Far below the 51,200 events at which Temporal ends a workflow; at this slowing pace, that takes years."""
KINDS = {"told": (END_WORK, LIVENESS), "asked": (END_WORK,)}
"""By what the host serves: whether other hosts signal the work order, or the work order probes the host."""


class Blocked:
    """A double of a work order that records why it waits for a host."""

    error: TaskError | None = None

    def wait_for_host(self, error: TaskError, now: datetime) -> bool:
        del now
        self.error = error
        return False

    def end_wait_for_host(self, now: datetime) -> bool:
        """Record nothing."""
        del now
        return False

    def move_to_host(self, lost_host: str, host: str, now: datetime) -> bool:
        """Fail: the workspace is kept on no other host."""
        raise NotImplementedError


@workflow.defn(sandboxed=False)
class Waits:
    """Waits for days for a step on a host that never answers."""

    @workflow.run
    async def run(self, kind: str) -> tuple[str, int]:
        """Return the reason of the wait, and the number of events of the history at its end."""
        where = {"orphan_limit_seconds": 0.0, "control_queue": workflow.info().task_queue, "probe_seconds": 60.0}
        opening = OpenWorkspace(work_order_id="wo-1", repository="/app")
        workspace = on_a_dead_host(opening, kept=False)
        workspace = workspace.model_copy(update={**where, "serves": KINDS[kind]})
        blocked = Blocked()
        hosts = HostWatch(blocked, lambda: None)
        hosts.workspace = workspace
        hosts.note_silence(HostSilence(host=workspace.host, since=workflow.now()))
        limits = Timeouts(heartbeat_seconds=1)
        call = StepCall(step=Step.CLASSIFY_ISSUE, workspace=workspace, starts_from="", limits=limits)
        await hosts.carry_out(call, _start)
        return blocked.error.type if blocked.error else "", workflow.info().get_current_history_length()


def _start(call: StepCall) -> Any:
    async def end_late() -> StepResult:
        await workflow.sleep(AWAY)
        return done(call)

    return asyncio.create_task(end_late())


@activity.defn(name="probe_host")
async def probe_host() -> None:
    """Fail at once: the server skips time only while no activity is open."""
    raise ApplicationError("nobody is there", non_retryable=True)


async def test_a_host_that_stays_away_is_asked_ever_more_rarely() -> None:
    """A work order that waits for its host stays far below the limit of a history, with signals and with probes."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with await skipping_time() as environment:
        start = partial(environment.client.start_workflow, Waits.run, task_queue=queue)
        async with Worker(
            environment.client,
            task_queue=queue,
            workflows=[Waits],
            activities=[probe_host],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            handles = [await start(kind, id=f"{queue}-{kind}") for kind in KINDS]
            results = await asyncio.wait_for(asyncio.gather(*(each.result() for each in handles)), 60)
    assert [waits_for for waits_for, _ in results] == ["HostGone"] * len(KINDS)
    assert max(events for _, events in results) < MOST_EVENTS


MONTH = timedelta(days=31)


def limited(call: StepCall) -> StepResult:
    """Fail as a step whose agent has met the limit; the retry comes after a month."""
    raise not_yet(f"The usage limit is reached at {call.step}.", "AgentApiUnavailable", MONTH)


@asynccontextmanager
async def completed(doubles: Doubles) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """Carry a work order out on a server that skips time, and yield its handle while the server runs."""
    async with await skipping_time() as environment:
        async with worker_of(environment.client, doubles):
            handle = await start(environment.client, doubles.task_queue)
            task: Task = await result_of(handle)
            assert task.status is Status.COMPLETED
            yield handle


async def test_a_step_waits_for_a_monthly_limit_and_continues_by_itself() -> None:
    """The work order stays open for the whole month, needs no person, and completes after the limit's end."""
    doubles = Doubles(f"queue-{uuid.uuid4().hex}")
    doubles.steps = {step: [limited, done] if step is Step.IMPLEMENT_PLAN else [done] for step in Step}
    async with completed(doubles) as handle:
        description = await handle.describe()
    assert description.close_time is not None
    assert description.close_time - description.start_time >= MONTH


async def test_the_server_keeps_no_timer_of_a_step_for_as_long_as_it_may_wait() -> None:
    """The server's database would keep the timer of a step's total time-out, for each step ever taken."""
    async with completed(Doubles(f"queue-{uuid.uuid4().hex}")) as handle:
        scheduled = [
            event.activity_task_scheduled_event_attributes
            async for event in handle.fetch_history_events()
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
    within = {each.activity_type.name: each.schedule_to_close_timeout.ToTimedelta() for each in scheduled}
    assert {within[name] for name in ("open_workspace", *Step)} == {timedelta()}
    assert max(within.values()) <= timedelta(days=1)
