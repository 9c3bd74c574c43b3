"""Why an activity ends early, and what the server says of it and of its work order."""

from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC
from typing import Final, ParamSpec, TypeVar

import structlog
from temporalio import activity
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import AsyncActivityHandle, Client, WorkflowExecutionStatus
from temporalio.converter import ActivitySerializationContext
from temporalio.service import RPCError, RPCStatusCode

from septet.agents.runs.folders import RunKey
from septet.system.processes import Halt
from septet.system.threads import stoppable_thread

P = ParamSpec("P")
T = TypeVar("T")

CLOSED: Final = "The work order was closed from outside."
CANCELLED: Final = "The work was stopped: cancelled, or moved on the board."

_log = structlog.get_logger()


async def why_agent_ends(*, is_pushed: bool) -> str | None:
    """Return why the agent has to end with its cancelled activity; `None`: it goes on, and others will find it.

    A person's cancel ends it. A worker that stops and an attempt that timed out leave it to the next attempt. When
    the server does not know the attempt any more, another one has begun, or the work order was reset, or it was
    terminated: only then is there nobody who would look after the agent.

    Args:
        is_pushed: The server pushes cancels, and says the same where a run was cancelled, reset or terminated.
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
    """Run blocking work in a thread; a cancel ends the processes that it runs, and the next attempt does it again.

    It is for work that is idempotent. Neither a person nor a worker that stops waits for a remote that hangs, and
    an attempt that has timed out keeps no lock from the next one.
    """
    halt = Halt()
    return await stoppable_thread(pool, halt.now, halt.over()(work), *args, **kwargs)


async def is_closed(
    client: Client, order_id: str, *, run_id: str | None = None, when_unknown: bool = True
) -> bool:
    """Say whether a work order is closed; one that cannot be asked about is not.

    Args:
        client: The server.
        order_id: The work order.
        run_id: Which of its workflow runs; the latest when absent.
        when_unknown: What to say of one that the server does not know: it was deleted, or is another server's.
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
    """Say whether a person has paused an activity that nobody carries out; not where nobody can be asked."""
    pending = await _pending(client, key)
    return pending is not None and pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED


async def was_reset(client: Client, key: RunKey, attempt: int, started_at: float) -> bool:
    """Say whether a person has reset an activity, and that under a later attempt than its first, which goes on.

    The server counts that attempt as the first one from then on, and knows it by its token no more.

    Args:
        client: The server.
        key: The activity.
        attempt: The number that the server gave the attempt.
        started_at: When it handed it out, in seconds by its clock.
    """
    pending = await _pending(client, key)
    return (
        pending is not None
        and pending.attempt < attempt
        and pending.last_started_time.ToDatetime(UTC).timestamp() == started_at
    )


def activity_handle(client: Client, key: RunKey) -> AsyncActivityHandle:
    """Return what ends an activity by its name, where its token counts no more."""
    handle: AsyncActivityHandle = client.get_async_activity_handle(
        workflow_id=key.workflow_id, run_id=key.run_id, activity_id=key.activity_id
    )
    return bound_to(key, handle, client)


def bound_to(key: RunKey, handle: AsyncActivityHandle, client: Client) -> AsyncActivityHandle:
    """Return a handle whose words are sealed as those of this activity, where anything is sealed."""
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
    """Return what the server tells of an activity that is not over; `None` where it is, or nobody can be asked."""
    try:
        description = await client.get_workflow_handle(key.workflow_id, run_id=key.run_id).describe()
    except RPCError as error:
        _log.warning("work_order_not_described", work_order_id=key.workflow_id, error=error.message)
        return None
    activities = description.raw_description.pending_activities
    return next((pending for pending in activities if pending.activity_id == key.activity_id), None)
