"""Ask the server about work orders for the board: which are closed, and which wait to run."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from activities.host.cancellation import is_closed
from activities.host.payloads import read_memo
from septet.board import (
    KnownOrders,
    OthersLook,
    SeatRequest,
    Until,
    WaitingOrders,
    circle_of,
    first_in_turn,
    project_key,
)
from septet.contracts.decisions import MoveReason
from septet.contracts.names import ORDER_ID, Stage, watch_id
from septet.contracts.task import Task
from septet.contracts.task_rows import MEMO
from septet.settings import Settings

_IDS_OF_A_QUERY: Final = 500
_AT_A_TIME: Final = 20
_WAITING: Final = 'WorkflowType="WorkOrder" AND SeptetStage="triaged" AND ExecutionStatus="Running"'


class BoardActivities:
    """Finds closed and waiting work orders, because the board's workflow cannot query the server."""

    @activity.defn(name="find_closed")
    async def find_closed(self, orders: KnownOrders) -> list[str]:
        """Return the given work orders that are closed or unknown to the server. Writes nothing.

        The server's lists lag, so a work order that is missing in the list of running ones is read by its id.
        """
        client = activity.client()
        running = await _find_running(client, [each for each in orders.ids if ORDER_ID.fullmatch(each)])
        missing = [order_id for order_id in orders.ids if order_id not in running]
        return [order_id for order_id in missing if await is_closed(client, order_id)]

    @activity.defn(name="find_waiting")
    async def find_waiting(self, orders: KnownOrders) -> WaitingOrders:
        """Return the waiting work orders that the board does not know, best score first, at most `orders.limit`.

        They are in stage `triaged` on this task queue. The list omits work orders of pipelines, which wait for
        lanes, and work orders that still wait for other work orders. Writes nothing.
        """
        known_ids, query = frozenset(orders.ids), f'{_WAITING} AND TaskQueue="{activity.info().task_queue}"'
        listed = activity.client().list_workflows(query, page_size=1000)
        rows = [row async for row in listed if row.id not in known_ids and row.parent_id is None]
        places = asyncio.Semaphore(_AT_A_TIME)
        requests = await asyncio.gather(*(_find_request(row, places) for row in rows))
        in_turn = first_in_turn([each for each in requests if each is not None], orders.project_limit)
        return WaitingOrders(waiting=tuple(in_turn[: orders.limit]), all=len(in_turn) <= orders.limit)


async def _find_running(client: Client, order_ids: Sequence[str]) -> set[str]:
    running: set[str] = set()
    for start in range(0, len(order_ids), _IDS_OF_A_QUERY):
        names = ", ".join(f'"{order_id}"' for order_id in order_ids[start : start + _IDS_OF_A_QUERY])
        query = f'WorkflowId IN ({names}) AND ExecutionStatus="Running"'
        running |= {row.id async for row in client.list_workflows(query)}
    return running


async def _find_request(row: WorkflowExecution, places: asyncio.Semaphore) -> SeatRequest | None:
    """Return a work order's request for a seat; `None` if the work order still waits for other work orders."""
    task = await read_memo(row, MEMO, Task)
    if task is None or task.after:
        async with places:
            if await _waits_for_others(row):
                return None
    task = task or Task(id=row.id)
    project = project_key(task.project or task.repository_url)
    return SeatRequest(id=row.id, project=project, score=task.score, since=row.start_time.timestamp())


async def _waits_for_others(row: WorkflowExecution) -> bool:
    """Return whether a work order waits for others to end."""
    try:
        description = await activity.client().get_workflow_handle(row.id, run_id=row.run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    pending = description.raw_description.pending_activities
    return any(each.activity_type.name == "look_at_others" for each in pending)


class CancelWorkOrder:
    """Cancels a work order that a person has ended by a move on the board."""

    @activity.defn(name="cancel_work_order")
    async def run(self, call: MoveReason) -> None:
        """Cancel the work order that runs this activity. Idempotent; writes nothing to disk."""
        info = activity.info()
        handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        is_sealed = activity.client().data_converter.payload_codec is not None  # the server would read a reason
        await handle.cancel(reason="" if is_sealed else call.reason_line)


def not_yet(why: str, settings: Settings, *, kind: str = "NotYet", rarely: bool = False) -> ApplicationError:
    """Return the failure of an activity whose check must be repeated; Temporal retries after a growing pause.

    Users see the failure's message as the reason why the workflow waits.

    Args:
        rarely: Whether to take the longest pause at once, because only a person can help.
    """
    first, longest = settings.look_seconds, settings.longest_look_seconds
    grown = first * 2.0 ** min(activity.info().attempt - 1, 30)
    pause = longest if rarely else min(grown, longest)
    return ApplicationError(
        why[:1000], type=kind, next_retry_delay=timedelta(seconds=pause), category=ApplicationErrorCategory.BENIGN
    )


_A_PERSON: Final = "a person decides: move this one to executing, or retry the other"
_OTHERS_AT_A_TIME: Final = 10


@dataclass(frozen=True, slots=True)
class Others:
    """Checks the work orders that have to end before another work order begins."""

    settings: Settings

    @activity.defn(name="look_at_others")
    async def look_at_others(self, look: OthersLook) -> None:
        """Raise unless all work orders in `look.after` have reached `look.until`. Idempotent; writes nothing.

        Raises:
            ApplicationError: A work order has not reached that state, or the server did not answer; Temporal
                retries after a growing pause.
        """
        places = asyncio.Semaphore(_OTHERS_AT_A_TIME)

        async def one(other: str) -> str | None:
            async with places:
                return await _why_not(other, look.until)

        try:
            held_up = [why for why in await asyncio.gather(*map(one, look.after)) if why]
            if held_up and (circle := await circle_of(look.id, look.after, _comes_after)):
                held_up.insert(0, f"they wait for each other: {circle}")
        except RPCError as error:
            raise not_yet(
                f"The server did not answer: {error.message}", self.settings, kind="ComesAfter"
            ) from error
        if held_up:
            raise not_yet("; ".join(held_up), self.settings, kind="ComesAfter")


async def _why_not(other: str, until: Until) -> str | None:
    order = await _describe(other)
    if order is None or order.workflow_type != "WorkOrder":
        return f"there is no work order {other} yet"
    if order.status is WorkflowExecutionStatus.RUNNING:
        return f"{other} is {_stage(order) or 'executing'}"
    if until == "closed":
        return None
    if order.status is not WorkflowExecutionStatus.COMPLETED:
        how = order.status.name.lower() if order.status else "closed"
        return f"{other} ended as {how}: {_A_PERSON}"
    return None if until == "completed" else await _why_not_merged(other)


async def _why_not_merged(other: str) -> str | None:
    watch = await _describe(watch_id(other))
    stage = _stage(watch) if watch is not None else None
    if watch is None or stage is None:
        return f"{other} is completed, but no host can see whether its pull request is merged: {_A_PERSON}"
    if stage == Stage.DONE:
        return None
    if stage == Stage.BLOCKED:
        return f"{other} is blocked, its pull request is not merged: {_A_PERSON}"
    return f"{other} is in review, its pull request is not merged yet"


async def _comes_after(order_id: str) -> tuple[str, ...]:
    """Return the ids of the work orders that must end before this work order begins."""
    order = await _describe(order_id)
    if order is None or order.status is not WorkflowExecutionStatus.RUNNING:
        return ()
    task = await read_memo(order, MEMO, Task)
    return task.after if task is not None else ()


async def _describe(workflow_id: str) -> WorkflowExecutionDescription | None:
    try:
        return await activity.client().get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


def _stage(description: WorkflowExecutionDescription) -> str | None:
    stage, *_ = description.search_attributes.get("SeptetStage") or [None]
    return str(stage) if stage else None
