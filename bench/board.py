"""The board with ten thousand work orders, some of them reset: a page with its counts, and the whole board."""

import asyncio
import time

from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy

from bench import seats
from bench.figure import Figure, median
from bench.pace import Pace
from bench.stage import Stage, stage
from clients.temporal.board import TASKS_AT_ONCE, BoardRows
from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from workers.server.preflight import register_search_attributes
from workflows.wire.search_attributes import STAGE, TAKEN_UP_AGAIN

PAGE_TARGET_SECONDS = 0.5
ALL_TARGET_SECONDS = 8.0
_AT_ONCE = 50
_SEEN_WITHIN_SECONDS = 120.0
_PROJECTS = 20
_AGAIN_SHARE = 20
"""One of this many work orders has been reset."""


def measure(pace: Pace) -> list[Figure]:
    """Measure pages and the whole board on the embedded server with a database on disk, and its seats."""
    return [*asyncio.run(_measured(pace)), *seats.measure(pace)]


async def _measured(pace: Pace) -> list[Figure]:
    count = pace.times(10_000, 2000)
    async with stage() as on:
        await register_search_attributes(on.client)
        await fill_board(on, count)
        rows = BoardRows(on.client)
        again = await _take_up_again(on, count)
        pages = [await _page_seconds(rows, count) for _ in range(pace.times(20, 5))]
        wholes = [await _all_seconds(rows, count) for _ in range(pace.times(5, 2))]
    note = f"p50 of {len(pages)}, the slowest {max(pages):.2f}; {count} wait, {again} again"
    return [
        Figure(f"a page of {TASKS_AT_ONCE} with counts", median(pages), "s", PAGE_TARGET_SECONDS, note=note),
        Figure("all rows", median(wholes), "s", ALL_TARGET_SECONDS, note=f"the slowest {max(wholes):.2f}"),
    ]


async def fill_board(on: Stage, count: int) -> None:
    """Put work orders on the board, and wait until the server's lists show them."""
    orders, places = WorkOrders(on.client), asyncio.Semaphore(_AT_ONCE)

    async def put(number: int) -> None:
        async with places:
            await orders.put(
                WorkOrderInput(
                    repository=f"https://github.com/o/r{number % _PROJECTS}",
                    title=f"Totals of report {number} are wrong",
                    description="Ten items are counted as nine. " * 20,
                    project=f"o/r{number % _PROJECTS}",
                    priority=1 + number % 5,
                    stage="triaged" if number % 2 else "collected",
                ),
                f"wo-{number:05d}",
            )

    await asyncio.gather(*map(put, range(count)))
    async with asyncio.timeout(_SEEN_WITHIN_SECONDS):
        while sum((await BoardRows(on.client).counts()).stages.values()) < count:  # noqa: ASYNC110 -- the server does not notify
            await asyncio.sleep(0.2)


async def _take_up_again(on: Stage, count: int) -> int:
    """Terminate some work orders and start them as after a reset; return their number."""
    again = TypedSearchAttributes(
        [SearchAttributePair(STAGE, "triaged"), SearchAttributePair(TAKEN_UP_AGAIN, True)]  # noqa: FBT003
    )
    names = [f"wo-{number:05d}" for number in range(0, count, _AGAIN_SHARE)]
    for name in names:
        await on.client.get_workflow_handle(name).terminate()
        await on.client.start_workflow(
            "WorkOrder",
            id=name,
            task_queue="septet",
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=again,
        )
    closed = 'WorkflowType="WorkOrder" AND ExecutionStatus="Terminated"'
    opened = f'WorkflowType="WorkOrder" AND {TAKEN_UP_AGAIN.name}=true'
    async with asyncio.timeout(_SEEN_WITHIN_SECONDS):
        for query in (closed, opened):
            while (await on.client.count_workflows(query)).count < len(names):  # noqa: ASYNC110 -- the server does not notify
                await asyncio.sleep(0.2)
    return len(names)


async def _page_seconds(rows: BoardRows, count: int) -> float:
    begin = time.perf_counter()
    board = await rows.page(None)
    seconds = time.perf_counter() - begin
    if board.summary.total != count:
        raise RuntimeError(f"The board has {board.summary.total} of {count}.")
    return seconds


async def _all_seconds(rows: BoardRows, count: int) -> float:
    begin = time.perf_counter()
    found = [task async for task in rows.all()]
    seconds = time.perf_counter() - begin
    if len(found) != count:
        raise RuntimeError(f"The board has {len(found)} of {count}.")
    return seconds
