"""Going on with a closed work order: a Temporal reset to the workflow task that scheduled a step."""

import secrets
from typing import Any, Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from clients._refused import refused_of, refused_of_open
from septet.contracts.decisions import PreviousRun
from septet.contracts.names import Step
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError

_STEPS: Final = frozenset(Step)
_NOT_REAPPLIED: Final = (
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST,
)
"""What was decided about the work that a reset takes back does not count for the work that follows."""


async def reset(  # noqa: PLR0913, PLR0917 -- what a reset is made of
    client: Client, order_id: str, run_id: str, event_id: int, signal: str, said: PreviousRun
) -> None:
    """Reset a work order to a workflow task; the new run waits for the signal that says what is wanted of it.

    The server takes no signal together with the reset: "unsupported post reset operation", as of release 1.32.

    Raises:
        RefusedTransitionError: The new run has been ended before the signal came.
        ServerNotReachedError: The server refused.
    """
    request = ResetWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=order_id, run_id=run_id),
        reason=f"{said.who or 'septet'}: {said.why}" if said.why else said.who or "septet",
        workflow_task_finish_event_id=event_id,
        request_id=secrets.token_hex(8),
        reset_reapply_exclude_types=_NOT_REAPPLIED,
    )
    try:
        begun = await client.workflow_service.reset_workflow_execution(request)
        await client.get_workflow_handle(order_id, run_id=begun.run_id).signal(signal, said)
    except RPCError as error:
        raise refused_of_open(error, order_id) from error


async def reset_point(run: WorkflowHandle[Any, Any], task: Task, from_step: Step | None) -> int:
    """Return the workflow task that scheduled the step, else the last step that was reached, else the first task.

    What was to be taken up and never began, such as the step after a plan that waits, begins after the one before.

    Raises:
        NotFoundError: The server has forgotten the work order.
        RefusedTransitionError: The work order never came to the step.
        ServerNotReachedError: The server refused.
    """
    wanted = from_step.value if from_step else _step_to_retry(task)
    try:
        first, last, found = await _tasks_of(run, wanted)
    except RPCError as error:
        raise refused_of(error, task.id) from error
    if found:
        return found
    if from_step is not None or not first:
        message = f"{task.id} never came to {wanted}."
        raise RefusedTransitionError(message, remedy=f"See its steps with `septet steps {task.id}`.")
    return last or first


async def _tasks_of(run: WorkflowHandle[Any, Any], step: str) -> tuple[int, int, int]:
    """Return the first workflow task, the last one that scheduled a step, and the one that scheduled this step.

    Each is 0 where there is none.
    """
    first = last = 0
    async for event in run.fetch_history_events():
        if not first and event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            first = event.event_id
        if event.event_type != EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            continue
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == step:
            return first, last, scheduled.workflow_task_completed_event_id
        if scheduled.activity_type.name in _STEPS:
            last = scheduled.workflow_task_completed_event_id
    return first, last, 0


def _step_to_retry(task: Task) -> str:
    unfinished = [row.step for row in task.steps if not row.success]
    if unfinished:
        return unfinished[-1]
    done = {row.step for row in task.steps}
    return next((step.value for step in Step if step.value not in done), Step.CREATE_PULL_REQUEST.value)
