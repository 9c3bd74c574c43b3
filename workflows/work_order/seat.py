"""The seat for which a work order waits in stage `triaged`, and which it gives back at its end."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy

from septet.board import OthersLook, SeatRequest, board_id
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.telemetry.metrics import SEAT_WAIT
from workflows.wire.activity_stubs import LOOK_AT_OTHERS
from workflows.wire.cancellation import cancel_and_wait, send_signal

_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=5), maximum_attempts=0)
"""The retries of the check that the earlier work orders have ended: a retry adds nothing to the history, and the
failure's message explains the wait."""
_BOARD_IS_BACK: Final = timedelta(seconds=10)
_BOARD_IS_AWAY: Final = timedelta(minutes=10)


class Seat:
    """Requests a seat from the board or the pipeline, and gives it back."""

    def __init__(self) -> None:
        self._board = ""
        self._is_given = False
        self._is_requested = False
        self._looks_again = False

    async def take(self, order: WorkOrderInput, task: Task, is_wanted: Callable[[], bool]) -> bool:
        """Wait for a seat as long as `is_wanted` returns true; return whether the work order may begin.

        The seat comes from the work order's pipeline, or else from the queue's board.
        """
        self._board, since = order.pipeline or "", workflow.now()
        if await self._wait_for_others(order, task, is_wanted) and await self._request(task, is_wanted):
            await workflow.wait_condition(lambda: self._is_given or not is_wanted())
        if is_wanted():
            histogram = workflow.metric_meter().create_histogram_float(SEAT_WAIT.name, SEAT_WAIT.help)
            histogram.record((workflow.now() - since).total_seconds())
            return True
        await self.give_back()
        return False

    async def give(self) -> bool:
        """Receive a seat: keep a requested seat, refuse any other; return whether the seat was kept."""
        if self._is_requested:
            self._is_given = True
        else:
            await self._tell_board("leaves", workflow.info().workflow_id)
        return self._is_given

    def look_again(self) -> None:
        """Check at once whether the earlier work orders have ended."""
        self._looks_again = True

    async def give_back(self) -> None:
        """Give back a seat, or withdraw the request for one."""
        if self._is_requested:
            self._is_requested = self._is_given = False
            await self._tell_board("leaves", workflow.info().workflow_id)

    async def _wait_for_others(self, order: WorkOrderInput, task: Task, is_wanted: Callable[[], bool]) -> bool:
        """Wait until the earlier work orders have ended; return `False` if the seat is no longer wanted."""
        look = OthersLook(id=task.id, after=order.after, until=order.after_until)
        while order.after and is_wanted():
            self._looks_again = False
            looking = LOOK_AT_OTHERS.start(
                look,
                start_to_close_timeout=timedelta(minutes=2),
                retry_policy=_RETRIES,
                summary=f"after {', '.join(order.after)} ({order.after_until})"[:200],
            )
            await workflow.wait_condition(lambda: looking.done() or self._looks_again or not is_wanted())  # noqa: B023 -- the condition is checked in this round only
            if looking.done():
                await looking
                break
            await cancel_and_wait(looking)
        return is_wanted()

    async def _request(self, task: Task, is_wanted: Callable[[], bool]) -> bool:
        """Request a seat until a board receives the request; return `False` if the seat is no longer wanted."""
        self._is_requested, self._is_given, pause = True, False, _BOARD_IS_BACK
        since = workflow.info().workflow_start_time.timestamp()
        request = SeatRequest(
            id=task.id, project=task.project or task.repository_url, score=task.score, since=since
        )
        while is_wanted() and not await self._tell_board("waits", request):
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._is_given or not is_wanted(), timeout=pause, timeout_summary="is there a board?"
                )
            if self._is_given:
                break
            pause = min(2 * pause, _BOARD_IS_AWAY)
        return is_wanted()

    async def _tell_board(self, signal: str, content: SeatRequest | str) -> bool:
        """Signal the queue's board, or the pipeline; return whether the receiver exists."""
        return await send_signal(self._board or board_id(workflow.info().task_queue), signal, content)
