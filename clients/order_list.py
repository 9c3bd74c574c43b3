"""Work orders by their status, page by page, as far as the server's index tells."""

from collections.abc import Mapping
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from clients._closed import task_of_row
from clients.latest import latest
from clients.page_word import page_token, page_word
from septet.contracts.names import Status
from septet.contracts.replies import TasksReply
from septet.errors import ServerNotReachedError

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
    """Return a page of work orders, open ones first, each once.

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
    rows = client.list_workflows(query, page_size=limit, next_page_token=page_token(after))
    try:
        await rows.fetch_next_page()
        found = tuple(task_of_row(row) for row in await latest(client, rows.current_page or ()))
    except RPCError as error:
        raise ServerNotReachedError(f"The Temporal server refused: {error.message}.") from error
    return TasksReply(tasks=found, next=page_word(rows.next_page_token or b""))
