"""Continue a closed work order by a Temporal reset to the workflow task that scheduled a step."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType, WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients.executions.messages import WORK_ORDER, server_refusal, server_refusals
from clients.executions.seals import seals
from septet.contracts.decisions import PreviousRun
from septet.contracts.names import Step
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError, RetryUnderWayError, ServerNotReachedError

_STEPS: Final = frozenset(Step)
_NOT_REAPPLIED: Final = (
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST,
)
"""The events that a reset does not repeat: decisions on the work before the reset must not apply to later work."""
_RESET: Final = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
_NOBODY: Final = "septet-claims"
"""A queue that no worker serves. A claim has no work to do: its workflow id is a lock that one client gets."""
_CLAIM_LASTS: Final = timedelta(minutes=2)
"""How long the claim of a killed client lasts; until then, other clients cannot reset the work order."""


@asynccontextmanager
async def claim(client: Client, order_id: str) -> AsyncIterator[None]:
    """During the block, prevent other clients from resetting the work order.

    The server would carry out both of two resets, even with the same request id (as of release 1.32).

    Raises:
        RetryUnderWayError: Another client resets the work order now.
        ServerNotReachedError: The server does not answer, or refuses.
    """
    name = f"{order_id}/again"
    try:
        execution = await client.start_workflow(
            "Claim", id=name, task_queue=_NOBODY, execution_timeout=_CLAIM_LASTS
        )
    except WorkflowAlreadyStartedError as error:
        message = f"Someone else is retrying {order_id} right now."
        raise RetryUnderWayError(message, remedy=f"Look at it with `septet show {order_id}`.") from error
    except RPCError as error:
        raise server_refusal(error) from error
    try:
        yield
    finally:
        with suppress(ServerNotReachedError):  # the claim ends by itself
            await delete_run(client, name, execution.result_run_id or "")


async def delete_run(client: Client, name: str, run_id: str = "") -> None:
    """Delete a run of a workflow from the server, by default the last run.

    Raises:
        ServerNotReachedError: The server does not answer, or refuses.
    """
    run = WorkflowExecution(workflow_id=name, run_id=run_id)
    request = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=run)
    with server_refusals():
        await client.workflow_service.delete_workflow_execution(request)


async def reset(
    client: Client, run: WorkflowHandle[Any, Any], event_id: int, signal: str, previous_run: PreviousRun
) -> None:
    """Reset a run to a workflow task, and send the new run its expected `signal` with `previous_run`.

    The server takes no signal together with the reset: "unsupported post reset operation", as of release 1.32.

    Raises:
        RefusedTransitionError: The new run was ended before the signal arrived.
        ServerNotReachedError: The server does not answer, or refuses.
    """
    reason = previous_run.who or "septet"
    if previous_run.why and not seals(client):  # the server could read the reason of a reset
        reason = f"{reason}: {previous_run.why}"
    request = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=run.run_id or ""),
        reason=reason,
        workflow_task_finish_event_id=event_id,
        request_id=secrets.token_hex(8),
        reset_reapply_exclude_types=_NOT_REAPPLIED,
    )
    try:
        reply = await client.workflow_service.reset_workflow_execution(request)
        await client.get_workflow_handle(run.id, run_id=reply.run_id).signal(signal, previous_run)
    except RPCError as error:
        raise WORK_ORDER.refusal_of_open(error, run.id) from error


async def reset_point(run: WorkflowHandle[Any, Any], task: Task, from_step: Step | None) -> int:
    """Return the id of the event to which a reset must go back so that a step runs again.

    The event is the workflow task that scheduled `from_step`, by default the failed step. If the failed step never
    began, the event is the task of the previous step, or else the workflow's first task. A work order that
    made only a plan continues by default at its last task.

    Raises:
        NotFoundError: The server has deleted the work order.
        RefusedTransitionError: The work order never reached the step.
        ServerNotReachedError: The server does not answer, or refuses.
    """
    step = from_step.value if from_step else _step_to_retry(task)
    try:
        if task.has_plan_alone and from_step is None:
            last = 0
            async for event in run.fetch_history_events():
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                    last = event.event_id
            return last
        first, last, scheduler = await _tasks_of(run, step)
    except RPCError as error:
        raise WORK_ORDER.refusal(error, task.id) from error
    if scheduler:
        return scheduler
    if from_step is not None or not first:
        message = f"{task.id} never reached {step}."
        raise RefusedTransitionError(message, remedy=f"See its steps with `septet steps {task.id}`.")
    return last or first


async def _tasks_of(run: WorkflowHandle[Any, Any], step: str) -> tuple[int, int, int]:
    """Return three workflow tasks' event ids: before all steps, of the last step before `step`, and of `step`.

    A missing task is 0. The task before all steps is the task that received the failure to open the workspace, or
    else the workflow's first task. The first of these after an earlier reset has the id of the reset's event.
    """
    first = last = taken_back = opening = 0
    has_failed = False
    async for event in run.fetch_history_events():
        if event.workflow_task_failed_event_attributes.cause == _RESET:
            taken_back = taken_back or event.event_id
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED and (has_failed or not first):
            first, has_failed = taken_back or event.event_id, False
        ended = (event.activity_task_failed_event_attributes, event.activity_task_timed_out_event_attributes)
        has_failed |= bool(opening) and opening in {each.scheduled_event_id for each in ended}
        if event.event_type != EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            continue
        scheduled = event.activity_task_scheduled_event_attributes
        opening = event.event_id if scheduled.activity_type.name == "open_workspace" else 0
        if scheduled.activity_type.name not in _STEPS:
            continue
        point, taken_back = taken_back or scheduled.workflow_task_completed_event_id, 0
        if scheduled.activity_type.name == step:
            return first, last, point
        last = point
    return first, last, 0


def _step_to_retry(task: Task) -> str:
    unfinished = [row.step for row in task.steps if not row.success]
    if unfinished:
        return unfinished[-1]
    names = {row.step for row in task.steps}
    return next((step.value for step in Step if step.value not in names), Step.CREATE_PULL_REQUEST.value)
