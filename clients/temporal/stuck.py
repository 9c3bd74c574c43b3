"""Find stuck workflows, whose workflow task fails at each attempt."""

from typing import Final

from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import WorkflowTaskFailedEventAttributes
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from clients.temporal.payloads import seals
from clients.temporal.seals import began_unsealed
from septet.errors import SealedError, UnknownKeyError
from septet.system.text import cut_bytes

_PROBLEMS: Final = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")
_TASK_FAILED: Final = "category=WorkflowTaskFailed"
_EVENTS: Final = 100
"""The number of latest events that are read; repeated failures of one task add no events."""
_CAUSE_BYTES: Final = 500
_UNSEALED: Final = (
    "It began unsealed, and workers with SEPTET_SEAL_REQUIRED refuse that. "
    "It continues as soon as its workers run without this setting: remove it until this has closed."
)
_LACKS_KEY: Final = frozenset({SealedError.__name__, UnknownKeyError.__name__})
"""The failure types of a worker without the keys: their messages have the remedy, and no other build helps."""
_BENIGN: Final = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
)
"""An event arrived during the task, which is retried; or a person reset the workflow."""
_FIRST: Final = 1
"""The number of a task's first attempt."""


async def stuck_cause(client: Client, row: WorkflowExecution) -> str | None:
    """Return why an open workflow is stuck, with the remedy; `None` if it is not.

    A task that timed out because its worker died is retried by another worker, and does not count.

    Raises:
        RPCError: The server refused.
    """
    if not isinstance(row, WorkflowExecutionDescription):
        return stuck_cause_of_row(row)
    noted = stuck_cause_of_row(row)
    if noted is None and row.raw_description.pending_workflow_task.attempt <= _FIRST:
        return None
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=ExecutionName(workflow_id=row.id, run_id=row.run_id),
        maximum_page_size=_EVENTS,
    )
    answer = await client.workflow_service.get_workflow_execution_history_reverse(request)
    for event in answer.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            if event.workflow_task_failed_event_attributes.cause in _BENIGN:
                return None
            return await _cause(client, row, event.workflow_task_failed_event_attributes)
    return noted


def stuck_cause_of_row(row: WorkflowExecution) -> str | None:
    """Return a notice if a row is of a stuck workflow: the server marks such rows within a minute."""
    if row.status is not WorkflowExecutionStatus.RUNNING:
        return None
    if _TASK_FAILED not in (row.typed_search_attributes.get(_PROBLEMS) or ()):
        return None
    return "Its workflow task fails; `septet show` shows the reason."


async def _cause(
    client: Client, row: WorkflowExecutionDescription, attributes: WorkflowTaskFailedEventAttributes
) -> str:
    """Return the worker's failure message, and the build that can continue: that of the last completed task."""
    if seals(client) and await began_unsealed(client, row.id, row.run_id):
        return _UNSEALED
    build = row.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id
    error = await client.data_converter.decode_failure(attributes.failure)
    if (lack := _lack_of_key(error)) is not None:
        return f"Its workflow task fails: {_words_of(lack)}."
    words = _words_of(error)
    if attributes.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
        return (
            f"The current build cannot continue what {build or 'another one'} started: {words}. "
            f"It continues under a build that has its patches: `septet promote{f' {build}' if build else ''}`."
        )
    if attributes.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES:
        return f"The namespace lacks search attributes: {words}. Add them with `septet worker --register`."
    fixes = (
        "Install a release that fixes this, and restart the worker; on a shared server, then run `septet promote`."
    )
    return f"Its workflow task fails: {words}. {fixes}"


def _lack_of_key(error: BaseException | None) -> BaseException | None:
    """Return the error, among a failure and its causes, that a worker lacks a key; else `None`."""
    while error is not None and getattr(error, "type", None) not in _LACKS_KEY:
        error = error.__cause__
    return error


def _words_of(error: BaseException) -> str:
    """Return an error's message on one line, without its full stop."""
    return cut_bytes(" ".join(getattr(error, "message", str(error)).split()), _CAUSE_BYTES).removesuffix(".")
