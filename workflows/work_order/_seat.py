"""The seat that a triaged work order waits for, and gives back when it closes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, FailureError

from septet.contracts.board import SeatRequest, board_id
from septet.contracts.order import WorkOrderInput
from septet.contracts.others import OthersLook
from septet.contracts.task import Task
from workflows.activity_stubs import LOOK_AT_OTHERS

_LOOK: Final = timedelta(minutes=2)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=5), maximum_attempts=0)
"""Others that are not over are looked at again by retries: they grow no history, and say what is waited for."""
_BOARD_IS_BACK: Final = timedelta(seconds=10)
_BOARD_IS_AWAY: Final = timedelta(minutes=10)


class Seat:
    """One work order's place among those that run at a time."""

    def __init__(self) -> None:
        """Begin without one."""
        self._board = ""
        self._given = False
        self._asked = False
        self._asks_again = False

    async def taken(self, order: WorkOrderInput, task: Task, wanted: Callable[[], bool]) -> bool:
        """Wait for a seat for as long as it is `wanted`; return whether it was taken.

        The board of the queue gives it; in a pipeline the pipeline does.
        """
        self._board = order.pipeline or ""
        if await self._others_are_over(order, task, wanted) and await self._ask(task, wanted):
            await workflow.wait_condition(lambda: self._given or not wanted())
        if wanted():
            return True
        await self.left()
        return False

    async def give(self) -> bool:
        """Take the board's word that the seat is this work order's; one that was not asked for is given back."""
        if self._asked:
            self._given = True
        else:
            await self._tell_board("leaves", workflow.info().workflow_id)
        return self._given

    def look_again(self) -> None:
        """Look again now at those that it comes after."""
        self._asks_again = True

    async def left(self) -> None:
        """Give back what was asked for or taken: the work order begins without a seat, or closes."""
        if self._asked:
            self._asked = self._given = False
            await self._tell_board("leaves", workflow.info().workflow_id)

    async def _others_are_over(self, order: WorkOrderInput, task: Task, wanted: Callable[[], bool]) -> bool:
        """Wait for those that it comes after; return whether they are over while it is still `wanted`."""
        asked = OthersLook(id=task.id, after=order.after, until=order.after_until)
        while order.after and wanted():
            self._asks_again = False
            looking = LOOK_AT_OTHERS.start(
                asked,
                start_to_close_timeout=_LOOK,
                retry_policy=_RETRIES,
                summary=f"after {', '.join(order.after)} ({order.after_until})"[:200],
            )
            await workflow.wait_condition(lambda: looking.done() or self._asks_again or not wanted())  # noqa: B023 -- it is asked in this round only
            if looking.done():
                await looking
                break
            looking.cancel()
            with suppress(ActivityError):
                await looking
            if workflow.cancellation_reason() is not None:  # the wait for one activity swallows a cancel of all
                raise asyncio.CancelledError
        return wanted()

    async def _ask(self, task: Task, wanted: Callable[[], bool]) -> bool:
        """Ask the board for a seat, again and again where there is no board yet."""
        self._asked, self._given, pause = True, False, _BOARD_IS_BACK
        since = workflow.info().workflow_start_time.timestamp()
        asked = SeatRequest(id=task.id, project=task.project or task.repository_url, score=task.score, since=since)
        while wanted() and not await self._tell_board("waits", asked):
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._given or not wanted(), timeout=pause, timeout_summary="is there a board?"
                )
            if self._given:
                break
            pause = min(2 * pause, _BOARD_IS_AWAY)
        return wanted()

    async def _tell_board(self, signal: str, told: SeatRequest | str) -> bool:
        """Signal the board of this queue; return whether there is one.

        The wait for a signal swallows a cancel; the wait for a task that sends it does not.
        """
        board = workflow.get_external_workflow_handle(self._board or board_id(workflow.info().task_queue))
        sending = asyncio.create_task(board.signal(signal, told))
        try:
            await workflow.wait_condition(sending.done)
            await sending
        except FailureError:
            return False
        return True
