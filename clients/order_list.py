"""Work orders by their status, page by page, as far as the server's index tells."""

import base64
from collections.abc import Mapping
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from clients._closed import task_of_row
from septet.contracts.names import Status
from septet.contracts.replies import TasksReply
from septet.errors import NotFoundError, ServerNotReachedError

_OPEN: Final = (Status.PENDING, Status.RUNNING, Status.WAITING)
_AND_IS: Final[Mapping[Status, str]] = {
    **{status: f' AND ExecutionStatus="Running" AND SeptetStatus="{status}"' for status in _OPEN},
    Status.COMPLETED: ' AND ExecutionStatus="Completed"',
    Status.FAILED: ' AND ExecutionStatus IN ("Failed", "TimedOut")',
    Status.CANCELLED: ' AND ExecutionStatus IN ("Canceled", "Terminated")',
}
"""What the server itself knows of a work order's end is true also of one that was terminated."""


async def list_orders(
    client: Client, status: Status | None = None, *, limit: int = 100, after: str = ""
) -> TasksReply:
    """Return a page of work orders, open ones first.

    Args:
        client: Where.
        status: Of this one only.
        limit: How many at the most.
        after: The `next` of the page before.

    Raises:
        NotFoundError: No list goes on at `after`.
        ServerNotReachedError: The server refused.
    """
    query = f'WorkflowType="WorkOrder"{_AND_IS[status] if status else ""}'
    try:
        token = base64.b64decode(after, altchars=b"-_", validate=True) if after else None
        rows = client.list_workflows(query, page_size=limit, next_page_token=token)
        await rows.fetch_next_page()
    except (RPCError, ValueError) as error:
        if isinstance(error, RPCError) and not (after and error.status is RPCStatusCode.INVALID_ARGUMENT):
            raise ServerNotReachedError(f"The Temporal server refused: {error.message}.") from error
        message = f"No list of work orders goes on at {after[:80]!r}."
        raise NotFoundError(message, remedy="Give the `next` of the page before, as it was.") from error
    more = rows.next_page_token
    return TasksReply(
        tasks=tuple(task_of_row(row) for row in rows.current_page or ()),
        next=base64.urlsafe_b64encode(more).decode("ascii") if more else None,
    )
