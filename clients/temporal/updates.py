"""Send a person's decision to an open workflow as an update, which the workflow accepts or refuses."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.client import (
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.refusals import START_WORKER, Subject
from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.errors import RefusedTransitionError, ServerNotReachedError

Result = TypeVar("Result", bound=Wire)
_TOO_LONG: Final = (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError)
"""The errors of a time-out: the SDK may hide the cancel of its wait, so that `TimeoutError` is not raised."""
_WITHIN_SECONDS: Final = 20.0
_OUTCOME_WITHIN: Final = timedelta(seconds=5)
_NO_WORKER: Final = f"{START_WORKER}; it then carries out the decision if the server has received it."
_DECIDE_AGAIN: Final = f"{START_WORKER}, and decide again."


async def send_update(  # noqa: PLR0913 -- what an update is made of
    handle: WorkflowHandle[Any, Any],
    name: str,
    decision: Wire,
    kind: type[Result],
    subject: Subject,
    *,
    update_id: str | None = None,
) -> Result | None:
    """Send an update and return its result; `None` if the accepted update has no result within 20 s.

    Args:
        handle: The workflow.
        name: The update.
        decision: The update's argument.
        kind: The type of the result.
        subject: The kind of workflow, for errors.
        update_id: The update's id: a run of the workflow accepts an id once.

    Raises:
        RefusedTransitionError: The workflow refuses the update, or has closed.
        ServerNotReachedError: No worker has answered.
    """
    try:
        with _refusals(handle.id, subject):
            async with asyncio.timeout(_WITHIN_SECONDS):
                accepted = await handle.start_update(
                    name,
                    decision,
                    wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                    id=update_id,
                    result_type=kind,
                )
    except _TOO_LONG as error:
        message = f"No worker has answered for {handle.id} within {_WITHIN_SECONDS:.0f} s."
        raise ServerNotReachedError(message, remedy=_NO_WORKER) from error
    try:
        with _refusals(handle.id, subject):
            async with asyncio.timeout(_WITHIN_SECONDS):
                result: Result = await accepted.result()
                return result
    except _TOO_LONG:
        return None


def unanswered(task: Task) -> ServerNotReachedError:
    """Return the error for a decision that needs facts that only a worker has."""
    return ServerNotReachedError(f"No worker has answered for {task.id}.", remedy=task.stuck or _DECIDE_AGAIN)


async def has_taken(handle: WorkflowHandle[Any, Any], update_id: str) -> bool:
    """Return whether the last run of a workflow has carried out an update; a pending update does not count.

    Raises:
        RPCError: The server refused.
    """
    try:
        await handle.get_update_handle(update_id).result(rpc_timeout=_OUTCOME_WITHIN)
    except WorkflowUpdateFailedError:
        return True
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        return False
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


@contextmanager
def _refusals(workflow_id: str, subject: Subject) -> Iterator[None]:
    """Turn refusals of the workflow or the server in the block into Septet's errors."""
    try:
        yield
    except WorkflowUpdateFailedError as error:
        raise _refusal(error.cause) from error
    except RPCError as error:
        raise subject.refusal_of_open(error, workflow_id) from error


def _refusal(cause: BaseException) -> RefusedTransitionError:
    if not isinstance(cause, ApplicationError):
        return RefusedTransitionError(str(cause))
    if len(cause.details) > 1:
        message, remedy = cause.details[:2]
        return RefusedTransitionError(str(message), remedy=str(remedy))
    return RefusedTransitionError(cause.message)
