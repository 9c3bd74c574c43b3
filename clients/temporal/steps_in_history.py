"""The steps of an open work order as its history has them, for when no worker can be asked."""

from typing import Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription

from activities.payloads import read_json
from septet.contracts.names import Step
from septet.contracts.steps import StepResult
from septet.contracts.task import Task
from workflows.work_order.state import WorkOrderState

_STEPS: Final = frozenset({*(step.value for step in Step), "finalize_json"})


async def with_steps(client: Client, task: Task, row: WorkflowExecution) -> Task:
    """Return a work order with the steps that have ended in its last run.

    Raises:
        RPCError: The server refused.
        SealedError: They are sealed, and cannot be opened here.
    """
    state, begun = WorkOrderState(), set[int]()
    async for event in client.get_workflow_handle(row.id, run_id=row.run_id).fetch_history_events():
        if event.activity_task_scheduled_event_attributes.activity_type.name in _STEPS:
            begun.add(event.event_id)
        ended = event.activity_task_completed_event_attributes
        if ended.scheduled_event_id in begun and ended.result.payloads:
            content = await read_json(client.data_converter, ended.result.payloads[0])
            try:
                result = StepResult.model_validate_json(content, extra="ignore")
            except ValidationError:
                continue
            state.end_step(result, 1, event.event_time.ToDatetime())
    return task.model_copy(update={"steps": state.task.steps})


def pending_step(row: WorkflowExecutionDescription) -> str:
    """Return the step that has begun and not ended, as the server has it; empty where there is none."""
    names = (pending.activity_type.name for pending in row.raw_description.pending_activities)
    return next((name for name in names if name in _STEPS), "")
