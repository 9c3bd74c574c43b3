"""The board: one workflow that gives seats to work orders, best score first, within limits."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from septet.board import MOST_WAITING, BoardState, HostCapacity, KnownOrders, SeatRequest, Seats
    from workflows.wire.activity_stubs import FIND_CLOSED, FIND_WAITING

_FIRST_LOOK: Final = timedelta(seconds=5)
_RAREST_LOOK: Final = timedelta(minutes=10)
"""The longest pause between checks for ended work orders, because a terminated work order does not report its end.
"""
_ANSWER_WITHIN: Final = timedelta(minutes=2)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(minutes=1), maximum_attempts=0)
_AT_A_TIME: Final = 100
"""The most work orders to notify in one workflow task."""
_SHOWN: Final = 10
_STOCK_LASTS: Final = 300.0
"""The seconds between two lists of the waiting work orders whose requests the board has dropped."""
_STOCK_AGAIN: Final = 10.0
"""The same time, in seconds, if the board knows few waiting work orders."""


@workflow.defn(name="Board")
class Board:
    """Gives seats to waiting work orders with the signal `begin`."""

    @workflow.init
    def __init__(self, state: BoardState | None = None) -> None:
        """Restore the state from the workflow's previous run, before any signal arrives."""
        self._seats = Seats.of(state or BoardState())
        self._has_news = True
        self._look_after = _FIRST_LOOK
        self._stock_at = _now()
        self._look: asyncio.Task[list[str]] | None = None
        self._look_at = 0.0
        self._asked: set[str] = set()
        """The work orders with a seat that are being checked on the server, without those that wait again."""

    @workflow.run
    async def run(self, state: BoardState | None = None) -> None:
        """Give seats whenever some are free, and continue as new before the history grows long."""
        if state is None:
            await self._take_stock()
        while not workflow.info().is_continue_as_new_suggested():
            self._has_news = False
            await self._give_seats()
            self._show()
            await self._wait_for_news()
        self._seats.keep_best(_now())
        workflow.continue_as_new(self._seats.state)

    @workflow.signal(description="A work order waits for its turn.")
    def waits(self, request: SeatRequest) -> None:
        """Record a work order that waits for a seat."""
        self._seats.wait(request)
        self._asked.discard(request.id)
        self._note_change()

    @workflow.signal(description="A work order no longer waits, or has ended.")
    def leaves(self, order_id: str) -> None:
        """Free the seat of a work order that has ended or no longer waits."""
        self._seats.leave(order_id)
        self._note_change()

    @workflow.signal(description="A host serves, with these limits.")
    def serves(self, capacity: HostCapacity) -> None:
        """Record a host that serves work orders, with the host's limits."""
        before = (self._seats.places(_now()), self._seats.project_limit)
        self._seats.hear(capacity, _now())
        self._has_news = self._has_news or before != (self._seats.places(_now()), self._seats.project_limit)

    def _note_change(self) -> None:
        """Wake the board, and bring the next check for ended work orders forward."""
        self._has_news, self._look_after = True, _FIRST_LOOK
        if self._look is not None and self._look_at > _now() + _FIRST_LOOK.total_seconds():
            self._look.cancel()
            self._look = None

    async def _give_seats(self) -> None:
        """Give free seats to waiting work orders, and notify these work orders."""
        while due := self._next_takers():
            for taker in due:
                self._seats.seat(taker)
            are_there = await asyncio.gather(*(_begin_order(taker.id) for taker in due))
            for taker, is_there in zip(due, are_there, strict=True):
                if not is_there:
                    self._seats.leave(taker.id)
        if self._seats.passed_over and self._is_stock_due():
            await self._take_stock()
            self._has_news = True

    def _next_takers(self) -> list[SeatRequest]:
        self._seats.keep_best(_now())
        return self._seats.due(_now())[:_AT_A_TIME]

    def _is_stock_due(self) -> bool:
        """Return whether to list dropped requests again: if the last list is old, or few other requests wait."""
        age = _now() - self._stock_at
        return age >= _STOCK_LASTS or (age >= _STOCK_AGAIN and self._seats.is_low)

    async def _wait_for_news(self) -> None:
        """Wait for a change; while work orders wait for a seat, check regularly for ended ones."""
        if self._look is None and (self._seats.passed_over or (self._seats.waiting and self._seats.holders)):
            self._look = asyncio.create_task(self._find_closed_later())
        await workflow.wait_condition(self._must_go_on)
        if self._look is not None and self._look.done():
            closed, self._look = self._look.result(), None
            for order_id in self._asked.intersection(closed):
                self._seats.leave(order_id)

    def _must_go_on(self) -> bool:
        """Return whether to stop waiting: something changed, or signals have made the history long."""
        looked = self._look is not None and self._look.done()
        return self._has_news or looked or workflow.info().is_continue_as_new_suggested()

    async def _find_closed_later(self) -> list[str]:
        """Wait, longer each time while nothing changes; then return the work orders that have ended."""
        pause, self._look_after = self._look_after, min(2 * self._look_after, _RAREST_LOOK)
        self._look_at = _now() + pause.total_seconds()
        await workflow.sleep(pause, summary="is a seat free?")
        self._asked = set(self._seats.holders)
        return await FIND_CLOSED.start(
            KnownOrders(ids=tuple(self._seats.holders)),
            start_to_close_timeout=_ANSWER_WITHIN,
            retry_policy=_RETRIES,
            summary="which work orders have ended?",
        )

    async def _take_stock(self) -> None:
        """Read the waiting work orders from the server."""
        known = (*self._seats.waiting, *self._seats.holders)
        orders = await FIND_WAITING.start(
            KnownOrders(ids=known, limit=MOST_WAITING, project_limit=self._seats.project_limit),
            start_to_close_timeout=_ANSWER_WITHIN,
            retry_policy=_RETRIES,
            summary="who waits?",
        )
        self._stock_at = _now()
        self._seats.take_stock(orders, self._stock_at)

    def _show(self) -> None:
        seats = self._seats
        hosts = ", ".join(f"`{host}` ({limit})" for host, (limit, _) in list(seats.hosts.items())[:_SHOWN])
        running = ", ".join(f"`{order_id}`" for order_id in list(seats.holders)[:_SHOWN])
        more = " and more" if seats.passed_over else ""
        workflow.set_current_details(
            f"**{len(seats.waiting)}**{more} wait, "
            f"**{len(seats.holders)}** of {seats.places(_now())} seats are taken, "
            f"{seats.project_limit} at most for a project.\n\n"
            f"Running: {running or 'none'}\n\nHosts: {hosts or 'none'}"
        )


async def _begin_order(order_id: str) -> bool:
    """Signal a work order that it has a seat; return whether the work order exists."""
    try:
        await workflow.get_external_workflow_handle(order_id).signal("begin")
    except FailureError:
        return False
    return True


def _now() -> float:
    return workflow.now().timestamp()
