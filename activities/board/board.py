"""The board's queries to the server: which work orders have ended without a report, and which wait for a seat."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from temporalio import activity
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import is_closed
from activities.host.payloads import read_memo
from septet.board import first_in_turn, project_key
from septet.contracts.board import MEMO, KnownOrders, SeatRequest, WaitingOrders
from septet.contracts.decisions import MoveReason
from septet.contracts.names import ORDER_ID
from septet.contracts.task import Task

_IDS_OF_A_QUERY: Final = 500
_AT_A_TIME: Final = 20
_LOOK_AT_OTHERS: Final = "look_at_others"
_WAITING: Final = 'WorkflowType="WorkOrder" AND SeptetStage="triaged" AND ExecutionStatus="Running"'


class BoardActivities:
    """The queries to the server that a workflow cannot send by itself."""

    @activity.defn(name="find_closed")
    async def find_closed(self, orders: KnownOrders) -> list[str]:
        """Return the given work orders that are closed or unknown to the server. Writes nothing.

        The server's lists lag: a work order that is missing among the running work orders is read by its id.
        """
        client = activity.client()
        running = await _find_running(client, [each for each in orders.ids if ORDER_ID.fullmatch(each)])
        missing = [order_id for order_id in orders.ids if order_id not in running]
        return [order_id for order_id in missing if await is_closed(client, order_id)]

    @activity.defn(name="find_waiting")
    async def find_waiting(self, orders: KnownOrders) -> WaitingOrders:
        """Return the best triaged work orders of this queue that the board does not know, up to a limit.

        Writes nothing. The result leaves out work orders of a pipeline, which wait for its lanes, and work orders
        that still wait for other work orders: they do not need a seat yet.
        """
        known_ids = frozenset(orders.ids)
        rows = [row async for row in _list_triaged() if row.id not in known_ids and row.parent_id is None]
        places = asyncio.Semaphore(_AT_A_TIME)
        requests = await asyncio.gather(*(_find_request(row, places) for row in rows))
        in_turn = first_in_turn([each for each in requests if each is not None], orders.project_limit)
        return WaitingOrders(waiting=tuple(in_turn[: orders.limit]), all=len(in_turn) <= orders.limit)


async def _find_running(client: Client, order_ids: Sequence[str]) -> set[str]:
    """Return the given work orders that the server lists as running."""
    running: set[str] = set()
    for start in range(0, len(order_ids), _IDS_OF_A_QUERY):
        names = ", ".join(f'"{order_id}"' for order_id in order_ids[start : start + _IDS_OF_A_QUERY])
        query = f'WorkflowId IN ({names}) AND ExecutionStatus="Running"'
        running |= {row.id async for row in client.list_workflows(query)}
    return running


def _list_triaged() -> AsyncIterator[WorkflowExecution]:
    query = f'{_WAITING} AND TaskQueue="{activity.info().task_queue}"'
    return activity.client().list_workflows(query, page_size=1000)


async def _find_request(row: WorkflowExecution, places: asyncio.Semaphore) -> SeatRequest | None:
    """Return a triaged work order's request for a seat; `None` if it still waits for other work orders."""
    task = await read_memo(row, MEMO, Task)
    if task is None or task.after:
        async with places:
            if await _waits_for_others(row):
                return None
    task = task or Task(id=row.id)
    project = project_key(task.project or task.repository_url)
    return SeatRequest(id=row.id, project=project, score=task.score, since=row.start_time.timestamp())


async def _waits_for_others(row: WorkflowExecution) -> bool:
    """Return whether a work order waits for the work orders that it comes after."""
    try:
        description = await activity.client().get_workflow_handle(row.id, run_id=row.run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    pending = description.raw_description.pending_activities
    return any(each.activity_type.name == _LOOK_AT_OTHERS for each in pending)


class CancelWorkOrder:
    """Cancels the work order that a person has ended by a move on the board."""

    @activity.defn(name="cancel_work_order")
    async def run(self, call: MoveReason) -> None:
        """Request the cancel of the calling work order from the server. Idempotent; writes nothing to disk."""
        info = activity.info()
        handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        is_sealed = activity.client().data_converter.payload_codec is not None  # the server would read a reason
        await handle.cancel(reason="" if is_sealed else call.reason_line)
