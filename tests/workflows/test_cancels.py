"""The cancel of a work order: its end waits for no slot, and its agent learns of the cancel at once."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from fakes.activities import Doubles, ended
from fakes.lost_hosts import QUEUE
from fakes.running import replayed, worker_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.workspace import DELIVERS_CANCELS, END_WORK, CancelledWork, OpenWorkspace, Workspace
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def cancelled(client: Client, serves: tuple[str, ...], end_queue: str) -> Task:
    """Cancel a work order on a host without a free slot, where a worker serves only the queue `end_queue`."""
    name = uuid.uuid4().hex[:8]
    queues = {"task_queue": f"full-{name}", "control_queue": f"control-{name}", "serves": serves}

    def on_a_full_host(asked: OpenWorkspace) -> Workspace:
        return Doubles(QUEUE).workspace(asked).model_copy(update=queues)

    doubles = Doubles(QUEUE, open_workspace=on_a_full_host)
    open_workspace, end_work = (named(doubles, each) for each in ("open_workspace", "end_work"))
    orders = Worker(
        client, task_queue=QUEUE, workflows=[WorkOrder, PullRequestWorkflow], activities=[open_workspace]
    )
    async with orders, Worker(client, task_queue=str(queues[end_queue]), activities=[end_work]):
        handle: WorkflowHandle[Any, Task] = await client.start_workflow(
            "WorkOrder", {"repository": "/app", "title": "Totals"}, id=f"wo-{name}", task_queue=QUEUE
        )
        await wait_until(lambda: handle.query(WorkOrder.running_step), lambda step: step == Step.CLASSIFY_ISSUE)
        await handle.cancel()
        await wait_until(handle.describe, lambda described: described.close_time)
        return await handle.query(WorkOrder.work_order)


def named(doubles: Doubles, name: str) -> Any:
    """Return the double of an activity."""
    return next(
        each for each in doubles.activities() if activity._Definition.must_from_callable(each).name == name
    )


async def test_its_end_is_seen_to_on_the_control_queue(client: Client) -> None:
    """No worker serves the agents' queue, as if all slots were taken: the work order still ends, with its rescue."""
    task = await cancelled(client, (END_WORK,), "control_queue")
    assert (task.status, [rescue.reason for rescue in task.rescues]) == ("cancelled", ["cancelled"])


async def test_an_older_host_is_asked_where_it_listens(client: Client) -> None:
    """A host that does not list `end_work` for its control queue gets the activity on its agents' queue."""
    task = await cancelled(client, (), "task_queue")
    assert task.status == "cancelled"


async def test_a_cancel_is_delivered_where_the_server_does_not_push_it(client: Client) -> None:
    """The host's control queue gets the cancel while the step runs; the step ends its agent itself."""
    name = uuid.uuid4().hex[:8]
    delivered = asyncio.Event()
    queues = {"control_queue": f"control-{name}", "serves": (END_WORK, DELIVERS_CANCELS)}

    def behind_a_silent_server(asked: OpenWorkspace) -> Workspace:
        return Doubles(QUEUE).workspace(asked).model_copy(update=queues)

    async def until_delivered(call: StepCall) -> StepResult:
        await delivered.wait()
        return ended(call, Verdict.CANCELLED, "cancelled")

    @activity.defn(name="deliver_cancel")
    async def deliver_cancel(cancelled: CancelledWork) -> None:
        assert cancelled.work_order_id == f"wo-{name}"
        delivered.set()

    doubles = Doubles(QUEUE, {Step.CLASSIFY_ISSUE: [until_delivered]}, open_workspace=behind_a_silent_server)
    orders = worker_of(client, doubles)
    async with orders, Worker(client, task_queue=f"control-{name}", activities=[deliver_cancel]):
        handle: WorkflowHandle[Any, Task] = await client.start_workflow(
            "WorkOrder", {"repository": "/app", "title": "Totals"}, id=f"wo-{name}", task_queue=QUEUE
        )
        await wait_until(lambda: doubles.calls_of(Step.CLASSIFY_ISSUE))
        await handle.cancel()
        await wait_until(handle.describe, lambda described: described.close_time)
        task = await handle.query(WorkOrder.work_order)
        await replayed(handle, "histories/cancel-delivered")
    assert (task.status, task.steps[0].error_message) == ("cancelled", "cancelled")
    assert "end_work" not in doubles.names()
