"""Work orders that would wait for each other for ever: refused as the last of them is put on the board."""

from collections.abc import Sequence

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from clients._closed import task_of_row
from clients._refused import refused
from septet.board.circle import circle_of
from septet.errors import CircleError


async def refuse_a_circle(client: Client, order_id: str, after: Sequence[str]) -> None:
    """See that a new work order closes no circle, as far as the others are on the board already.

    Raises:
        CircleError: It would wait for itself, or for one that waits for it.
        ServerNotReachedError: The server refused.
    """

    async def comes_after(other: str) -> Sequence[str]:
        try:
            row = await client.get_workflow_handle(other).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ()
            raise refused(error) from error
        waits = row.status is WorkflowExecutionStatus.RUNNING and row.workflow_type == "WorkOrder"
        return task_of_row(row).after if waits else ()

    circle = await circle_of(order_id, after, comes_after)
    if circle is not None:
        message = f"after: they would wait for each other for ever: {circle}."
        raise CircleError(message)
