"""Work orders by their status, page by page, as far as the server's index tells."""

from collections.abc import Mapping
from typing import Final

from temporalio.client import Client

from clients._closed import task_of_row
from clients.pages import page_of
from septet.contracts.names import Status
from septet.contracts.replies import TasksReply

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
    rows, following = await page_of(client, query, after=after, limit=limit)
    return TasksReply(tasks=tuple(map(task_of_row, rows)), next=following)
