"""Find what a work order waits for: a person's decision, or an activity that the server has pending."""

from datetime import UTC
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.enums.v1 import EventType, PendingActivityState, WorkflowTaskFailedCause
from temporalio.api.history.v1 import WorkflowTaskFailedEventAttributes
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from activities.host.payloads import read_memo
from clients.executions.seals import began_unsealed, seals
from septet.contracts.names import TROUBLE, Stage, Status, Step
from septet.contracts.wire import Wire
from septet.errors import SealedError, UnknownKeyError
from septet.system.text import cut_bytes
from workflows.wire.search_attributes import STAGE, STATUS

_PAUSED: Final = "it is paused; `temporal activity unpause -w {id} --activity-id {activity}` continues it"
_QUEUED: Final = "queued since {since:%H:%M:%S} UTC: all slots are busy, or no worker runs (`septet doctor`)"
_ASKS_A_HOST: Final = "probe_host"
"""The name of the activity that polls a host; replies never name this activity as the cause of a wait."""
_NAMES_ITSELF: Final = "look_at_others"
"""The name of the activity that waits for other work orders; its failures already name these work orders."""
_STEPS: Final = frozenset({*(step.value for step in Step), "finalize_json"})
_PLAN: Final = "your approval: septet approve {id}, or septet reject {id} --feedback 'WHAT TO CHANGE'"
_NO_FAILURE: Final = "PullRequestOpen"
"""The failure type of an activity that finds a pull request still open; the failure is not a problem."""


def waits_for_opening(description: WorkflowExecutionDescription) -> bool:
    """Return whether a work order waits until a host opens its workspace."""
    pending = description.raw_description.pending_activities
    waiting = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return any(each.activity_type.name == "open_workspace" and each.state == waiting for each in pending)


class _Trouble(Wire):
    """The part of a `PullRequestNews` that clients show, read without the slow import of the whole class."""

    why: str
    """The reason why the host cannot read the pull request."""


async def waiting_for(description: WorkflowExecutionDescription, *, tells_next_try: bool = False) -> str | None:
    """Return what a work order waits for: a decision, or an activity with its last failure; `None` if nothing.

    With `tells_next_try`, the text includes the number of attempts and the time of the next attempt.
    """
    columns = description.typed_search_attributes
    if (columns.get(STATUS), columns.get(STAGE)) == (Status.WAITING, Stage.EXECUTING):
        return _PLAN.format(id=description.id)
    for pending in description.raw_description.pending_activities:
        if pending.activity_type.name == _ASKS_A_HOST:
            continue
        reason = await _reason(pending, description)
        if reason is not None:
            name = pending.activity_type.name
            what = "" if name == _NAMES_ITSELF else f"{name}: "
            return f"{what}{reason}{_next_try(pending) if tells_next_try else ''}"
    if columns.get(STAGE) != Stage.REVIEW:
        return None
    news = await read_memo(description, TROUBLE, _Trouble)
    return f"look_at_pull_request: {news.why}" if news is not None else None


async def _reason(pending: PendingActivityInfo, description: WorkflowExecutionDescription) -> str | None:
    if pending.paused:
        return _PAUSED.format(id=description.id, activity=pending.activity_id)
    if pending.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
        return None
    if pending.last_failure.application_failure_info.type == _NO_FAILURE:
        return None
    queued = _QUEUED.format(since=pending.scheduled_time.ToDatetime(UTC))
    if not pending.HasField("last_failure"):
        return queued
    return getattr(await description.data_converter.decode_failure(pending.last_failure), "message", "") or queued


def _next_try(pending: PendingActivityInfo) -> str:
    """Return a text with a failed activity's attempts and next attempt; empty if no attempt follows."""
    if pending.paused or not (pending.HasField("last_failure") and pending.HasField("next_attempt_schedule_time")):
        return ""
    when = pending.next_attempt_schedule_time.ToDatetime(UTC)
    tries = pending.attempt - 1
    return f" (tried {'once' if tries == 1 else f'{tries} times'}, again at {when:%H:%M:%S} UTC)"


_PROBLEMS: Final = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")
_EVENTS: Final = 100
"""The number of events to read, latest first; repeated failures of one workflow task add no events."""
_UNSEALED: Final = (
    "It began unsealed, and workers with SEPTET_SEAL_REQUIRED refuse that. "
    "It continues as soon as its workers run without this setting: remove it until this has closed."
)
_LACKS_KEY: Final = frozenset({SealedError.__name__, UnknownKeyError.__name__})
"""The failure types of a worker without the keys of sealed data; the failure's message names the remedy."""
_BENIGN: Final = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
)
"""The causes of failures that need no person: an event that arrived during a workflow task, or a reset."""


async def stuck_cause(client: Client, row: WorkflowExecution) -> str | None:
    """Return the reason why an open workflow is stuck, with the remedy; `None` if the workflow is not stuck.

    A workflow task that timed out does not count, because another worker retries the task.

    Raises:
        RPCError: The server refused.
    """
    if not isinstance(row, WorkflowExecutionDescription):
        return stuck_cause_of_row(row)
    noted = stuck_cause_of_row(row)
    if noted is None and row.raw_description.pending_workflow_task.attempt <= 1:
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
    """Return a notice if the server's list, up to a minute late, shows that a workflow is stuck; else `None`."""
    if row.status is not WorkflowExecutionStatus.RUNNING:
        return None
    if "category=WorkflowTaskFailed" not in (row.typed_search_attributes.get(_PROBLEMS) or ()):
        return None
    return "Its workflow task fails; `septet show` shows the reason."


async def _cause(
    client: Client, row: WorkflowExecutionDescription, attributes: WorkflowTaskFailedEventAttributes
) -> str:
    """Return why a workflow task failed, with a remedy, such as the build that can continue the workflow."""
    if seals(client) and await began_unsealed(client, row.id, row.run_id):
        return _UNSEALED
    build = row.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id
    error = await client.data_converter.decode_failure(attributes.failure)
    lack: BaseException | None = error
    while lack is not None and getattr(lack, "type", None) not in _LACKS_KEY:
        lack = lack.__cause__
    if lack is not None:
        return f"Its workflow task fails: {_words_of(lack)}."
    words = _words_of(error)
    if attributes.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
        return (
            f"The current build cannot continue what {build or 'another one'} started: {words}. "
            f"It continues under a build that has its patches: `septet promote{f' {build}' if build else ''}`."
        )
    if attributes.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES:
        return f"The namespace lacks search attributes: {words}. Add them with `septet worker --register`."
    fixes = "Install a release that fixes this, and restart the worker"
    return f"Its workflow task fails: {words}. {fixes}; on a shared server, then run `septet promote`."


def _words_of(error: BaseException) -> str:
    """Return an error's message on one line, without its full stop."""
    return cut_bytes(" ".join(getattr(error, "message", str(error)).split()), 500).removesuffix(".")


def pending_step(row: WorkflowExecutionDescription) -> str:
    """Return the step whose activity is pending at the server; an empty text without a pending step."""
    names = (pending.activity_type.name for pending in row.raw_description.pending_activities)
    return next((name for name in names if name in _STEPS), "")
