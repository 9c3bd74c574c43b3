"""What a person decides about an open workflow: an update, which the workflow takes or refuses."""

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
"""The SDK hides that a wait was cancelled, so that the time-out around it does not always say so itself."""
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
    """Send an update; return what is as it is then, or `None` where that takes longer than people wait.

    Args:
        handle: The workflow.
        name: The update.
        decision: What it is given.
        kind: What it answers.
        subject: What such a workflow is called in an error.
        update_id: What a run of the workflow knows it by: it takes one of the same id once.

    Raises:
        RefusedTransitionError: The workflow refuses it, or has closed.
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
    """Return the error where a work order waits for a decision on what only a worker could tell."""
    return ServerNotReachedError(f"No worker has answered for {task.id}.", remedy=task.stuck or _DECIDE_AGAIN)


async def has_taken(handle: WorkflowHandle[Any, Any], update_id: str) -> bool:
    """Say whether the last run of a workflow has carried out an update; one on its way is not carried out.

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
    """Raise in words of ours what the workflow or the server refuses in the block."""
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
