"""Find what a work order waits for: a person's decision, or an activity that the server has pending."""

from datetime import UTC
from typing import Final

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowExecutionDescription

from activities.host.payloads import read_memo
from septet.contracts.names import Stage, Status
from septet.contracts.pull_request_names import TROUBLE
from workflows.wire.search_attributes import STAGE, STATUS

_PAUSED: Final = "it is paused; `temporal activity unpause -w {id} --activity-id {activity}` continues it"
_QUEUED: Final = "queued since {since:%H:%M:%S} UTC: all slots are busy, or no worker runs (`septet doctor`)"
_ASKS_A_HOST: Final = "probe_host"
"""An activity that the work does not wait for."""
_NAMES_ITSELF: Final = "look_at_others"
"""An activity whose failures name the work order that it waits for."""
_OPENS: Final = "open_workspace"
_LOOKS: Final = "look_at_pull_request"
_PLAN: Final = "your approval: septet approve {id}, or septet reject {id} --feedback 'WHAT TO CHANGE'"
_NO_FAILURE: Final = "PullRequestOpen"
"""The failure of a watch whose pull request is still open: it is no trouble."""


def waits_for_opening(description: WorkflowExecutionDescription) -> bool:
    """Return whether a work order's workspace waits for a host that opens it."""
    pending = description.raw_description.pending_activities
    waiting = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return any(each.activity_type.name == _OPENS and each.state == waiting for each in pending)


async def waiting_for(description: WorkflowExecutionDescription, *, tells_next_try: bool = False) -> str | None:
    """Return the wait and its reason: a plan, or an activity with its last failure's message; else `None`.

    Args:
        description: The workflow's description.
        tells_next_try: Add the number of attempts and the time of the next: the text changes with each attempt.
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
    return await _trouble_of(description) if columns.get(STAGE) == Stage.REVIEW else None


async def _trouble_of(watch: WorkflowExecutionDescription) -> str | None:
    """Return why the host that polls a pull request cannot read its state."""
    from septet.contracts.pull_request import PullRequestNews

    news = await read_memo(watch, TROUBLE, PullRequestNews)
    return f"{_LOOKS}: {news.why}" if news is not None else None


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
    """Return a text on the next attempt of a failed activity."""
    if pending.paused or not (pending.HasField("last_failure") and pending.HasField("next_attempt_schedule_time")):
        return ""
    when = pending.next_attempt_schedule_time.ToDatetime(UTC)
    tries = pending.attempt - 1
    return f" (tried {'once' if tries == 1 else f'{tries} times'}, again at {when:%H:%M:%S} UTC)"
