"""Find out why an activity is cancelled, and what the server knows of the activity and its work order."""

from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC
from typing import Final, ParamSpec, TypeVar

import structlog
from temporalio import activity
from temporalio.api.enums.v1 import PendingActivityState, WorkflowTaskFailedCause
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import AsyncActivityHandle, Client, WorkflowExecutionStatus, WorkflowHistoryEventFilterType
from temporalio.converter import ActivitySerializationContext
from temporalio.service import RPCError, RPCStatusCode

from septet.agents.runs.records import RunKey
from septet.system.processes import Halt
from septet.system.threads import stoppable_thread

P = ParamSpec("P")
T = TypeVar("T")

CLOSED: Final = "The work order was closed from outside."
CANCELLED: Final = "The work was stopped: cancelled, or moved on the board."

_log = structlog.get_logger()


async def why_agent_ends(*, is_pushed: bool) -> str | None:
    """Return why the agent has to end with its cancelled activity; `None` if the agent continues.

    A person's cancel ends the agent. If the worker stops or the attempt times out, the agent continues, and the
    next attempt adopts it. If the server no longer knows the attempt, the agent ends only if the work order is
    closed: no later attempt would end it. After a reset, or if another attempt has begun, the agent continues.

    Args:
        is_pushed: Whether the server pushes cancels: it then reports a cancel, a reset and a termination alike.
    """
    details = activity.cancellation_details()
    if details is None:
        return None
    info, is_unknown = activity.info(), details.not_found
    order_id = info.workflow_id or ""
    if details.cancel_requested:
        is_unknown = is_pushed and await is_closed(activity.client(), order_id, run_id=info.workflow_run_id)
        if not is_unknown:
            return CANCELLED
    return CLOSED if is_unknown and await is_closed(activity.client(), order_id) else None


async def cancellable_thread(pool: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run idempotent blocking work in a thread, and return its result; a cancel ends the work's processes.

    The next attempt repeats the work. A remote that hangs delays neither a person nor a stopping worker, and a
    timed-out attempt leaves no lock behind.
    """
    halt = Halt()
    return await stoppable_thread(pool, halt.now, halt.over()(work), *args, **kwargs)


async def is_closed(
    client: Client, order_id: str, *, run_id: str | None = None, when_unknown: bool = True
) -> bool:
    """Return whether a work order is closed; `False` if the server does not answer.

    Args:
        run_id: The workflow run; by default the latest.
        when_unknown: The result if the server does not know the work order, because it was deleted or belongs to
            another server.
    """
    try:
        description = await client.get_workflow_handle(order_id, run_id=run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return when_unknown
        _log.warning("work_order_not_described", work_order_id=order_id, error=error.message)
        return False
    return description.status not in (None, WorkflowExecutionStatus.RUNNING)


async def is_paused(client: Client, key: RunKey) -> bool:
    """Return whether an activity is paused and no worker runs it; `False` if the server does not answer."""
    pending = await _pending(client, key)
    return pending is not None and pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED


async def was_reset(client: Client, key: RunKey, attempt: int, started_at: float) -> bool:
    """Return whether a person has reset an activity during its second or a later attempt.

    The attempt continues after a reset, but the server rejects the attempt's token, and counts from 1 again.

    Args:
        started_at: The time when the server started the attempt, in seconds by the server's clock.
    """
    pending = await _pending(client, key)
    return (
        pending is not None
        and pending.attempt < attempt
        and pending.last_started_time.ToDatetime(UTC).timestamp() == started_at
    )


def activity_handle(client: Client, key: RunKey) -> AsyncActivityHandle:
    """Return a handle that completes or fails an activity by its ids; use it if the server rejects the token."""
    handle: AsyncActivityHandle = client.get_async_activity_handle(
        workflow_id=key.workflow_id, run_id=key.run_id, activity_id=key.activity_id
    )
    return bound_to(key, handle, client)


def bound_to(key: RunKey, handle: AsyncActivityHandle, client: Client) -> AsyncActivityHandle:
    """Return the handle with a converter that seals payloads for this activity, if payloads are sealed."""
    return handle.with_context(
        ActivitySerializationContext(
            namespace=client.namespace,
            activity_id=key.activity_id,
            activity_type=None,
            activity_task_queue=None,
            workflow_id=key.workflow_id,
            workflow_type=None,
            is_local=False,
        )
    )


async def _pending(client: Client, key: RunKey) -> PendingActivityInfo | None:
    """Return what the server knows of a pending activity; `None` if it knows nothing or does not answer."""
    try:
        description = await client.get_workflow_handle(key.workflow_id, run_id=key.run_id).describe()
    except RPCError as error:
        _log.warning("work_order_not_described", work_order_id=key.workflow_id, error=error.message)
        return None
    activities = description.raw_description.pending_activities
    return next((pending for pending in activities if pending.activity_id == key.activity_id), None)


async def error_before_reset(client: Client, workflow_id: str, run_id: str) -> str:
    """Return the type of the error that ended the workflow run whose reset began the run `run_id`.

    The result is empty if there was no error, or if the server no longer knows the earlier run.

    Raises:
        RPCError: The server did not answer.
    """
    reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    before = ""
    async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
        failed = event.workflow_task_failed_event_attributes
        before = failed.base_run_id if failed.cause == reset else before
    if not before:
        return ""
    ended = client.get_workflow_handle(workflow_id, run_id=before)
    try:
        async for event in ended.fetch_history_events(
            event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
        ):
            return event.workflow_execution_failed_event_attributes.failure.application_failure_info.type
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return ""
