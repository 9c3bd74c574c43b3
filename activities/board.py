"""What the board asks of the server: who has ended without a word, and who waits."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from temporalio import activity
from temporalio.client import Client, WorkflowExecution

from activities._rows import task_in
from activities.cancellation import is_closed
from septet.contracts.board import KnownOrders, SeatRequest, WaitingOrders
from septet.contracts.names import ORDER_ID
from septet.contracts.task import Task

_IDS_OF_A_QUERY: Final = 500
_WAITING: Final = 'WorkflowType="WorkOrder" AND SeptetStage="triaged" AND ExecutionStatus="Running"'


class BoardActivities:
    """Questions to the server that a workflow cannot ask."""

    @activity.defn(name="find_closed")
    async def find_closed(self, orders: KnownOrders) -> list[str]:
        """Return those of some work orders that are closed or gone. Leaves nothing.

        One query tells who runs. The server's lists lag: who is missing there is asked about by name.
        """
        client = activity.client()
        running = await _find_running(client, [each for each in orders.ids if ORDER_ID.fullmatch(each)])
        missing = [order_id for order_id in orders.ids if order_id not in running]
        return [order_id for order_id in missing if await is_closed(client, order_id)]

    @activity.defn(name="find_waiting")
    async def find_waiting(self, orders: KnownOrders) -> WaitingOrders:
        """Return the triaged work orders of this queue that are not known, up to a limit. Leaves nothing."""
        waiting: list[SeatRequest] = []
        known_ids = frozenset(orders.ids)
        async for row in _list_triaged():
            if row.id in known_ids:
                continue
            if len(waiting) == orders.limit:
                return WaitingOrders(waiting=tuple(waiting), all=False)
            waiting.append(await _seat_request(row))
        return WaitingOrders(waiting=tuple(waiting))


async def _find_running(client: Client, order_ids: Sequence[str]) -> set[str]:
    """Return those of some work orders that the server's lists have among the running ones."""
    running: set[str] = set()
    for start in range(0, len(order_ids), _IDS_OF_A_QUERY):
        names = ", ".join(f'"{order_id}"' for order_id in order_ids[start : start + _IDS_OF_A_QUERY])
        query = f'WorkflowId IN ({names}) AND ExecutionStatus="Running"'
        running |= {row.id async for row in client.list_workflows(query)}
    return running


def _list_triaged() -> AsyncIterator[WorkflowExecution]:
    query = f'{_WAITING} AND TaskQueue="{activity.info().task_queue}"'
    return activity.client().list_workflows(query, page_size=1000)


async def _seat_request(row: WorkflowExecution) -> SeatRequest:
    task = await task_in(row) or Task(id=row.id)
    project = task.project or task.repository_url
    return SeatRequest(id=row.id, project=project, score=task.score, since=row.start_time.timestamp())
