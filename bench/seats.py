"""The board's own work: the size of its hand-over to its next run, and the time until it frees a lost seat."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio.client import WorkflowHandle
from temporalio.worker import Worker

from activities.board.board import BoardActivities
from bench.figure import Figure
from bench.pace import Pace
from bench.stage import Stage, stage
from septet.board import HostCapacity, board_id
from septet.contracts.names import Stage as TaskStage
from septet.contracts.order import WorkOrderInput
from septet.contracts.task_rows import MEMO, first_task, row_of
from septet.system.text import timestamp
from workers.server.preflight import register_search_attributes
from workflows.board import Board
from workflows.wire.search_attributes import start_attributes

HANDED_ON_TARGET_KB: Final = 250.0
SEAT_TARGET_SECONDS: Final = 10.0
_QUEUE: Final = "septet"
_AT_ONCE: Final = 50
_WITHIN_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.1
_SIGNAL_SECONDS: Final = 1.0
_ASLEEP: Final = timedelta(days=1)
"""The delay of the work orders, which wait on the board and never run."""


def measure(pace: Pace) -> list[Figure]:
    """Measure both on one board, with its database on disk."""
    return asyncio.run(_measured(pace))


async def _measured(pace: Pace) -> list[Figure]:
    count = pace.times(10_000, 3_000)
    async with stage() as on:
        await register_search_attributes(on.client)
        await _fill(on, count)
        async with _board(on) as board:
            seconds = [await _seconds_of_a_lost_seat(on, board) for _ in range(pace.times(3, 1))]
            size = await _handed_on_bytes(on, board)
    return [
        Figure(
            "what the board hands on", size / 1000, "KB", HANDED_ON_TARGET_KB,
            note=f"{count} wait, with the longest ids and names of projects",
        ),
        Figure(
            "a seat of a terminated work order, busy board", max(seconds), "s", SEAT_TARGET_SECONDS,
            note=f"the slowest of {len(seconds)}; the board is told something every {_SIGNAL_SECONDS:.0f} s",
        ),
    ]  # fmt: skip


async def _fill(on: Stage, count: int) -> None:
    """Put work orders with long names on the board, and wait until the server's lists show them."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def put(number: int) -> None:
        order_id = f"wo-{number:061d}"
        order = WorkOrderInput(
            repository="https://github.com/o/r",
            title="Totals are wrong",
            description="Ten items are counted as nine.",
            project=f"{'organisation/':0<36}{number % 20:04d}",
            priority=1 + number % 5,
            stage="triaged",
        )
        row = row_of(first_task(order_id, order, TaskStage.TRIAGED, timestamp(datetime.now(UTC))))
        async with places:
            await on.client.start_workflow(
                "WorkOrder",
                order,
                id=order_id,
                task_queue=_QUEUE,
                start_delay=_ASLEEP,
                memo={MEMO: row},
                search_attributes=start_attributes(row),
            )

    await asyncio.gather(*map(put, range(count)))
    async with asyncio.timeout(_WITHIN_SECONDS):
        while (await on.client.count_workflows('SeptetStage="triaged"')).count < count:  # noqa: ASYNC110 -- the server does not notify
            await asyncio.sleep(_LOOK_SECONDS)


@asynccontextmanager
async def _board(on: Stage) -> AsyncIterator[WorkflowHandle[Any, None]]:
    """Run a board whose one seat is taken."""
    asked = BoardActivities()
    async with Worker(
        on.client, task_queue=_QUEUE, workflows=[Board], activities=[asked.find_closed, asked.find_waiting]
    ):
        board = await on.client.start_workflow(
            Board.run,
            id=board_id(_QUEUE),
            task_queue=_QUEUE,
            start_signal="serves",
            start_signal_args=[_capacity(1)],
        )
        await _holder(board, "")
        yield board
        await board.terminate()


def _capacity(host_limit: int) -> HostCapacity:
    return HostCapacity(host="one", host_limit=host_limit, project_limit=4, seconds=1e6)


async def _seconds_of_a_lost_seat(on: Stage, board: WorkflowHandle[Any, None]) -> float:
    """Terminate the seat's holder while the board gets signals; return the seconds until the next holder."""
    holder = await _holder(board, "")
    await on.client.get_workflow_handle(holder).terminate()
    begin = time.perf_counter()

    async def tell() -> None:
        while True:
            await board.signal(Board.leaves, f"wo-{uuid.uuid4().hex}")
            await asyncio.sleep(_SIGNAL_SECONDS)

    telling = asyncio.create_task(tell())
    try:
        await _holder(board, holder)
        return time.perf_counter() - begin
    finally:
        telling.cancel()


async def _holder(board: WorkflowHandle[Any, None], before: str) -> str:
    """Return the holder of the seat, as soon as it differs from `before`."""
    async with asyncio.timeout(_WITHIN_SECONDS):
        while True:
            details = str(await board.query("__temporal_workflow_metadata"))
            _, _, running = details.partition("Running: `")
            holder, ended, _ = running.partition("`")
            if ended and holder != before:
                return holder
            await asyncio.sleep(_LOOK_SECONDS)


async def _handed_on_bytes(on: Stage, board: WorkflowHandle[Any, None]) -> int:
    """Signal the board until its next run starts, and return the size of that run's input."""
    before = (await board.describe()).run_id
    async with asyncio.timeout(_WITHIN_SECONDS):
        while (run_id := (await board.describe()).run_id) == before:
            await asyncio.gather(*(board.signal(Board.leaves, f"wo-{at}") for at in range(_AT_ONCE)))
    async for event in on.client.get_workflow_handle(board.id, run_id=run_id).fetch_history_events():
        return event.workflow_execution_started_event_attributes.input.ByteSize()
    raise RuntimeError("The board's next run has no history.")
