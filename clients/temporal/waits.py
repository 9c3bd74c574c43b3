"""What a work order waits for: a person's word, or one of the activities that its server has pending."""

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
"""Not what the work waits for."""
_NAMES_ITSELF: Final = "look_at_others"
"""Its failures say which work order is waited for."""
_OPENS: Final = "open_workspace"
_LOOKS: Final = "look_at_pull_request"
_PLAN: Final = "your approval: septet approve {id}, or septet reject {id} --feedback 'WHAT TO CHANGE'"
_NO_FAILURE: Final = "PullRequestOpen"
"""Nothing holds up a task in review but its people."""


def waits_for_opening(description: WorkflowExecutionDescription) -> bool:
    """Say whether its workspace is to be opened, and no host has taken that."""
    pending = description.raw_description.pending_activities
    waiting = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return any(each.activity_type.name == _OPENS and each.state == waiting for each in pending)


async def waiting_for(description: WorkflowExecutionDescription, *, tells_next_try: bool = False) -> str | None:
    """Return what waits and why: a plan, or an activity in the words of its last failure; else `None`.

    Args:
        description: Of the workflow.
        tells_next_try: Say how often it was tried, and when it is tried again: other words after each try.
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
    """Return why the host that looks at a pull request cannot tell what became of it."""
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
    """Return when an activity that has failed is tried again, for people."""
    if pending.paused or not (pending.HasField("last_failure") and pending.HasField("next_attempt_schedule_time")):
        return ""
    when = pending.next_attempt_schedule_time.ToDatetime(UTC)
    tries = pending.attempt - 1
    return f" (tried {'once' if tries == 1 else f'{tries} times'}, again at {when:%H:%M:%S} UTC)"
