"""What a person decides about an open work order: an update, which its workflow takes or refuses."""

import asyncio
from typing import Any, Final, TypeVar

from temporalio.client import (
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from clients._refused import refused_of_open
from septet.contracts.wire import Wire
from septet.errors import RefusedTransitionError, ServerNotReachedError

Told = TypeVar("Told", bound=Wire)
_TOO_LONG: Final = (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError)
"""The SDK hides that a wait was cancelled, so that the time-out around it does not always say so itself."""
_WITHIN_SECONDS: Final = 20.0
_NO_WORKER: Final = (
    "Start one with `septet up` or `septet worker`; it then takes the decision, if that was asked for."
)


async def update(
    handle: WorkflowHandle[Any, Any], name: str, decision: Wire, kind: type[Told], show: str = "septet show"
) -> Told | None:
    """Send an update; return what is as it is then, or `None` where that takes longer than people wait.

    Args:
        handle: The workflow.
        name: The update.
        decision: What it is given.
        kind: What it answers.
        show: The command by which people look at such a workflow.

    Raises:
        RefusedTransitionError: The workflow refuses it, or has closed.
        ServerNotReachedError: No worker has answered.
    """
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            taken = await handle.start_update(
                name, decision, wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=kind
            )
    except WorkflowUpdateFailedError as error:
        raise _refusal(error) from error
    except RPCError as error:
        raise refused_of_open(error, handle.id, show) from error
    except _TOO_LONG as error:
        message = f"No worker has answered for {handle.id} within {_WITHIN_SECONDS:.0f} s."
        raise ServerNotReachedError(message, remedy=_NO_WORKER) from error
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            told: Told = await taken.result()
            return told
    except WorkflowUpdateFailedError as error:
        raise _refusal(error) from error
    except RPCError as error:
        raise refused_of_open(error, handle.id, show) from error
    except _TOO_LONG:
        return None


def _refusal(error: WorkflowUpdateFailedError) -> RefusedTransitionError:
    cause = error.cause
    if isinstance(cause, ApplicationError) and len(cause.details) > 1:
        message, remedy = cause.details[:2]
        return RefusedTransitionError(str(message), remedy=str(remedy))
    return RefusedTransitionError(cause.message if isinstance(cause, ApplicationError) else str(cause))
