"""Work orders with doubled activities on a real server: their start, their wait, and their replay."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

import pytest
from fakes.activities import Doubles, ended
from fakes.recorded import keep
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Replayer, Worker

from septet.contracts.facts import Rescue
from septet.contracts.names import Stage, Step, Verdict, watch_id
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workers.connection.plugin import SeptetPlugin
from workflows.notifications import NotificationWorkflow
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

ORDER: Final = {"repository": "/app", "title": "Totals are wrong"}
WITHIN_SECONDS: Final = 60.0
KEPT: Final = Rescue(snapshot="wo/0005-rescue", reason="cancelled")
_SOON: Final = timedelta(seconds=0.1)

Handle = WorkflowHandle[Any, Any]


def worker_of(client: Client, doubles: Doubles, *workflows: type, **options: Any) -> Worker:
    return Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow, NotificationWorkflow, *workflows],
        activities=doubles.activities(),
        max_heartbeat_throttle_interval=_SOON,
        default_heartbeat_throttle_interval=_SOON,
        **options,
    )


async def start(client: Client, task_queue: str, order_id: str = "", **fields: Any) -> Handle:
    order_id = order_id or f"wo-{uuid.uuid4().hex[:8]}"
    await client.start_workflow("WorkOrder", {**ORDER, **fields}, id=order_id, task_queue=task_queue)
    return client.get_workflow_handle(order_id, result_type=Task)


@asynccontextmanager
async def work_order(client: Client, doubles: Doubles, way: str = "", **fields: Any) -> AsyncIterator[Handle]:
    """Start a work order with a worker; at the end replay its last run's history, and keep it as a way's history."""
    async with worker_of(client, doubles):
        handle = await start(client, doubles.task_queue, **fields)
        yield handle
        await replayed(handle, way)


@asynccontextmanager
async def watched(client: Client, doubles: Doubles, way: str = "", **fields: Any) -> AsyncIterator[Handle]:
    """Let a work order complete, and yield the watch of its pull request; at the end replay the watch's history."""
    async with worker_of(client, doubles):
        order = await start(client, doubles.task_queue, **fields)
        assert (await result_of(order)).stage is Stage.REVIEW
        watch = client.get_workflow_handle(watch_id(order.id), result_type=Task)
        await watch.query(PullRequestWorkflow.work_order)
        try:
            yield watch
        finally:
            with suppress(RPCError):  # the watch has ended
                await watch.terminate()
        await replayed(watch, way)


async def replayed(handle: Handle, way: str = "", *workflows: type) -> None:
    """Replay the history of a workflow's last run, and keep it as a way's history."""
    history = await handle.fetch_history()
    await Replayer(workflows=workflows, plugins=[SeptetPlugin()]).replay_workflow(history)
    if way:
        keep(way, history)


async def result_of(handle: Handle) -> Any:
    return await asyncio.wait_for(handle.result(), WITHIN_SECONDS)


async def failure_of(handle: Handle) -> BaseException | None:
    with pytest.raises(WorkflowFailureError) as caught:
        await result_of(handle)
    return caught.value.cause


async def until(handle: Handle, holds: Callable[[Task], object]) -> Task:
    return await wait_until(lambda: handle.query(WorkOrder.work_order), holds)


async def until_step(handle: Handle, step: Step = Step.CLASSIFY_ISSUE) -> None:
    await wait_until(lambda: handle.query(WorkOrder.running_step), lambda running: running == step)


async def reset(client: Client, workflow_id: str, event_id: int) -> None:
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            reason="by hand",
            workflow_task_finish_event_id=event_id,
            request_id=uuid.uuid4().hex,
        )
    )


async def refusal(update: Awaitable[Any]) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await update
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.message


async def works_until_cancelled(call: StepCall) -> StepResult:
    """Work as an agent does until the step is cancelled, and leave a rescue."""
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return ended(call, Verdict.CANCELLED, "cancelled", rescues=(KEPT,))
