"""Read an open work order's steps from the history of its workflow, for use if no worker answers."""

from contextlib import suppress
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution

from activities.host.payloads import read_json
from septet.contracts.decisions import PreviousRun
from septet.contracts.lanes import SessionSummary
from septet.contracts.names import Step
from septet.contracts.steps import StepResult
from septet.contracts.task import Task
from workflows.work_order.state import WorkOrderState

_STEPS: Final = frozenset({*(step.value for step in Step), "finalize_json"})
_TELL: Final = _STEPS | {"summarise_session", "resumed"}
"""The activities that run agents, and the signal after a reset; all of these report used tokens."""


async def with_steps(client: Client, task: Task, row: WorkflowExecution) -> Task:
    """Return a work order with the ended steps of its last Temporal run, and with its usage in all Temporal runs.

    Raises:
        RPCError: The server refused.
        SealedError: This process lacks the key of the results.
    """
    state, begun = WorkOrderState(), dict[int, str]()
    async for event in client.get_workflow_handle(row.id, run_id=row.run_id).fetch_history_events():
        begun[event.event_id] = event.activity_task_scheduled_event_attributes.activity_type.name
        ended = event.activity_task_completed_event_attributes
        signal = event.workflow_execution_signaled_event_attributes
        name = begun.get(ended.scheduled_event_id) or signal.signal_name
        payloads = ended.result.payloads or signal.input.payloads
        if name not in _TELL or not payloads:
            continue
        content, now = await read_json(client.data_converter, payloads[0]), event.event_time.ToDatetime()
        with suppress(ValidationError):
            if name == "resumed":
                state.resume(PreviousRun.model_validate_json(content, extra="ignore"), now)
            elif name == "summarise_session":
                state.take_in_summary(SessionSummary.model_validate_json(content, extra="ignore"), now)
            else:
                state.end_step(StepResult.model_validate_json(content, extra="ignore"), 1, now)
    usage = max(task.usage, state.task.usage, key=lambda used: used.tokens)
    return task.model_copy(update={"steps": state.task.steps, "usage": usage})
