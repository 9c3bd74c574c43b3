"""What the board asks of the server: who has ended without a word, and who waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from temporalio import activity
from temporalio.client import WorkflowExecution

from activities._rows import task_in
from activities.cancellation import is_closed
from septet.contracts.board import KnownOrders, SeatRequest, WaitingOrders
from septet.contracts.task import Task

_AT_A_TIME: Final = 20
_WAITING: Final = 'WorkflowType="WorkOrder" AND SeptetStage="triaged" AND ExecutionStatus="Running"'


class BoardActivities:
    """Questions to the server that a workflow cannot ask."""

    @activity.defn(name="find_closed")
    async def find_closed(self, orders: KnownOrders) -> list[str]:
        """Return those of some work orders that are closed or gone. Leaves nothing."""
        places = asyncio.Semaphore(_AT_A_TIME)

        async def is_closed_order(order_id: str) -> bool:
            async with places:
                return await is_closed(activity.client(), order_id)

        ended = await asyncio.gather(*map(is_closed_order, orders.ids))
        return [order_id for order_id, is_so in zip(orders.ids, ended, strict=True) if is_so]

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


def _list_triaged() -> AsyncIterator[WorkflowExecution]:
    query = f'{_WAITING} AND TaskQueue="{activity.info().task_queue}"'
    return activity.client().list_workflows(query, page_size=1000)


async def _seat_request(row: WorkflowExecution) -> SeatRequest:
    task = await task_in(row) or Task(id=row.id)
    project = task.project or task.repository_url
    return SeatRequest(id=row.id, project=project, score=task.score, since=row.start_time.timestamp())
