"""Send a query to a workflow, which a worker answers."""

import asyncio
from typing import Any, Final, TypeVar

from temporalio.client import WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.refusals import START_WORKER, Subject
from septet.errors import ServerNotReachedError

Answer = TypeVar("Answer")
_WITHIN_SECONDS: Final = 5.0
_REMEDY: Final = f"{START_WORKER}."


async def send_query(
    handle: WorkflowHandle[Any, Any],
    name: str,
    kind: type[Answer],
    subject: Subject,
    *,
    within_seconds: float = _WITHIN_SECONDS,
) -> Answer:
    """Return a workflow's answer to a query.

    Args:
        handle: The workflow.
        name: The query.
        kind: The type of the answer.
        subject: The kind of workflow, for errors.
        within_seconds: How long to wait, in seconds: the server itself keeps a query for half a minute.

    Raises:
        NotFoundError: There is no such workflow.
        ServerNotReachedError: No worker has answered, or the server refused.
    """
    try:
        async with asyncio.timeout(within_seconds):
            answer: Answer = await handle.query(name, result_type=kind)
    except TimeoutError as error:
        message = f"No worker has answered for {handle.id} within {within_seconds:.0f} s."
        raise ServerNotReachedError(message, remedy=_REMEDY) from error
    except WorkflowQueryFailedError as error:
        raise ServerNotReachedError(f"{handle.id} does not answer: {error}.", remedy=_REMEDY) from error
    except RPCError as error:
        if error.status is RPCStatusCode.FAILED_PRECONDITION:
            message = f"No worker has answered for {handle.id}."
            raise ServerNotReachedError(message, remedy=_REMEDY) from error
        raise subject.refusal(error, handle.id) from error
    return answer
