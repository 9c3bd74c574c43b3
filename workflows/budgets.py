"""The workflows for budgets and costs: an account per budget, costs per project, a pause per paused login."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from septet.budgets.account import (
        DAY,
        PROJECT,
        AccountState,
        AccountView,
        Grant,
        LimitCall,
        RaiseCall,
        RaiseView,
        ReserveCall,
        SettleCall,
    )
    from septet.budgets.account_amounts import find_unknown_step
    from septet.budgets.account_book import AccountBook
    from septet.contracts.amounts import Spending, describe_spending, parse_limit
    from septet.contracts.costs import CostHistory, CostNotes
    from septet.contracts.pauses import LONGEST_PAUSE_SECONDS, MEMO, QuotaPause
    from septet.costs.cost_book import CostBook
    from workflows.wire.activity_stubs import READ_ENDED_ACCOUNT
    from workflows.wire.cancellation import send_signal
    from workflows.wire.failures import invalid_update, refusal
    from workflows.wire.inputs import reads_input
    from workflows.wire.policies import LIST_OPTIONS

_CALLED_AGAIN: Final = timedelta(minutes=2)
"""The pause before the account signals the waiting work orders again, in case the last signalled work order has
ended."""
_QUIET: Final = 0.25
"""After a message, an account counts as in use for this part of the time between two idle checks. A state read in
this time is current: no other run of the account can have begun and ended since."""


@workflow.defn(name="Account")
class Account:
    """One budget: its limit, use and reservations, and the work orders that wait for room in it."""

    @workflow.init
    def __init__(self, state: AccountState) -> None:
        """Restore the state from the account's previous run, before any signal or update arrives."""
        self._book = AccountBook(state)
        self._has_news = True
        self._last_news = workflow.now()
        now = workflow.now().timestamp()
        self._is_known = abs(now - (state.read_at or now)) < state.looked_at_seconds * _QUIET

    @workflow.run
    async def run(self, state: AccountState) -> AccountState:
        """Run until the account is idle, and return its state for the next run.

        The account of a project or of the day never ends.
        """
        stays = state.scope == DAY or state.scope.startswith(f"{PROJECT}/")
        if not self._is_known:
            self._book = AccountBook(await READ_ENDED_ACCOUNT.start(state, **LIST_OPTIONS))
            self._is_known = True
        ending = None if stays else asyncio.create_task(self._wait_until_idle(state.looked_at_seconds))
        while self._has_news or ending is None or not ending.done():
            self._has_news = False
            await self._call_waiting()
            self._show()
            await self._wait_for_news(ending)
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(self._book.state)
        return self._book.state

    @workflow.query(description="The budget: its limit, what was used, and which work orders wait.")
    def account(self) -> AccountView:
        """Return the budget as people see it."""
        return self._book.view

    @workflow.update(description="Whether an agent may start now, and within which limits.")
    @reads_input("reserve", ReserveCall, by_worker=True)
    async def reserve(self, call: ReserveCall) -> Grant:
        """Grant or refuse a reservation; later signal a refused work order, unless too many already wait."""
        await self._until_known()
        self._note_news()
        return self._book.reserve(call, workflow.now())

    @reserve.validator
    @reads_input("reserve", ReserveCall, by_worker=True)
    def _may_reserve(self, call: ReserveCall) -> None:
        """Refuse an invalid call, such as a call that names no turn."""

    @workflow.signal(description="What a turn used that has ended or paused.")
    async def settle(self, call: SettleCall) -> None:
        """Count what a turn used, once."""
        await self._until_known()
        self._note_news()
        self._book.settle(call, workflow.now())

    @workflow.update(description="Set the limit.")
    @reads_input("set_limit", LimitCall)
    async def set_limit(self, call: LimitCall) -> AccountView:
        """Set the limit; waiting work orders then reserve again."""
        await self._until_known()
        return self._set_limit(call, raises=False)

    @set_limit.validator
    @reads_input("set_limit", LimitCall)
    def _may_set_limit(self, call: LimitCall) -> None:
        """Refuse an invalid limit or an unknown step."""
        _check_step(call)

    @workflow.update(description="Raise the limit by an amount.")
    @reads_input("raise_limit", RaiseCall)
    async def raise_limit(self, call: RaiseCall) -> RaiseView:
        """Raise the limit, unless the caller expects another limit; waiting work orders then reserve again."""
        await self._until_known()
        is_raised = self._book.is_expected(call)
        view = self._set_limit(call, raises=True) if is_raised else self._book.view
        return RaiseView(**dict(view), is_raised=is_raised)

    @raise_limit.validator
    @reads_input("raise_limit", RaiseCall)
    def _may_raise_limit(self, call: RaiseCall) -> None:
        """Refuse an invalid call, or an amount that cannot be added to the current limit."""
        _check_step(call)
        _check_expected(call)
        message, remedy = self._book.find_mistake(call)
        if message and self._book.is_expected(call):
            raise refusal(message, remedy)

    def _set_limit(self, call: LimitCall, *, raises: bool) -> AccountView:
        self._note_news()
        self._book.set_limit(call, raises=raises)
        return self._book.view

    async def _until_known(self) -> None:
        if not self._is_known:
            await workflow.wait_condition(lambda: self._is_known)

    def _note_news(self) -> None:
        self._has_news, self._last_news = True, workflow.now()

    async def _call_waiting(self) -> None:
        while callers := self._book.take_callers(workflow.now()):
            scope = self._book.view.scope
            await asyncio.gather(*(send_signal(order_id, "budget_open", scope) for order_id in callers))
            if not self._book.calls_more:
                break

    async def _wait_for_news(self, ending: "asyncio.Task[None] | None") -> None:
        """Wait for a message; if work orders wait, at most until the day ends or a reservation expires."""
        try:
            await workflow.wait_condition(
                lambda: (
                    self._has_news
                    or (ending is not None and ending.done())
                    or workflow.info().is_continue_as_new_suggested()
                ),
                timeout=self._pause(),
                timeout_summary="until those that wait are called again",
            )
        except TimeoutError:
            self._book.note_time()

    def _pause(self) -> timedelta | None:
        """Return the longest time to wait for a message; `None` for no limit."""
        book = self._book
        if book.calls_again:
            return _CALLED_AGAIN
        ends = (book.day_ends_in(workflow.now()), book.hold_ends_in(workflow.now()))
        return min((end for end in ends if end is not None), default=None)

    async def _wait_until_idle(self, looked_at_seconds: float) -> None:
        """Wait until the account can end: no recent message, no agent that may run, no work order to signal later.

        A work order that waits for a higher limit needs no running account: the raise starts the account again.
        """
        between = timedelta(seconds=looked_at_seconds)
        while (
            workflow.now() < self._last_news + between * _QUIET
            or self._book.has_agents(workflow.now())
            or self._pause() is not None
        ):
            await workflow.sleep(between, summary="is it still used?")

    def _show(self) -> None:
        view, limit = self._book.view, self._book.state.limit
        spent = describe_spending(view.spent, limit) if limit is not None else "no limit"
        waiting = ", ".join(f"`{order_id}`" for order_id in view.waiting)
        workflow.set_current_details(
            f"**{view.scope}**: {spent}. {view.running} agents are running, {view.waiting_count} work "
            "orders are waiting.\n\n"
            f"In all: {view.total.usd:.2f} USD, {view.total.tokens:,} tokens, {view.total.turns} turns.\n\n"
            f"Waiting: {waiting or 'none'}"
        )


def _check_step(call: LimitCall) -> None:
    """Refuse an unknown step; only validators may call this."""
    message, remedy = find_unknown_step(call.step)
    if message:
        raise invalid_update(f"{message} {remedy}")


def _check_expected(call: RaiseCall) -> None:
    """Refuse an expected limit that is not in Septet's notation, because no current limit could equal it."""
    if not call.expected:
        return
    try:
        limit = parse_limit(call.expected)
    except ValueError as error:
        raise invalid_update(f"raise_limit: expected {error}.") from None
    if str(limit) != call.expected:
        raise invalid_update(f"raise_limit: expected must be written as {limit}.")


_MESSAGES: Final = 500
"""The number of messages after which the workflow continues as new, because a query replays all of them."""


@workflow.defn(name="Costs")
class Costs:
    """The workflow with one project's cost history; the workflow never ends, so the server never deletes it."""

    @workflow.init
    def __init__(self, history: CostHistory) -> None:
        self._book = CostBook(history)
        self._messages = 0

    @workflow.run
    async def run(self, history: CostHistory) -> None:
        """Record notes as they arrive, and continue as new after `_MESSAGES` messages."""
        del history
        await workflow.wait_condition(
            lambda: self._messages >= _MESSAGES or workflow.info().is_continue_as_new_suggested()
        )
        workflow.continue_as_new(self._book.history)

    @workflow.signal(description="What turns of this project's work orders have used.")
    def note(self, notes: CostNotes) -> None:
        """Record the notes; a repeated note counts once."""
        self._book.add(notes.notes)
        self._messages += 1
        history, total = self._book.history, Spending()
        for row in history.rows:
            total = total.plus(row.use)
        minutes = total.seconds / 60
        workflow.set_current_details(
            f"**{history.project}**: {total.usd:.2f} USD, {total.tokens:,} tokens, {minutes:.0f} minutes, "
            f"{total.turns} agent runs. {len(history.completed)} completed work orders are kept one by one."
        )

    @workflow.query(description="All that is known of what this project's work orders have cost.")
    def costs(self) -> CostHistory:
        """Return the cost history of the project."""
        return self._book.history


@workflow.defn(name="Quota")
class Quota:
    """The pause of one login, during which no host starts an agent or calls a forge with the login."""

    @workflow.init
    def __init__(self, pause: QuotaPause) -> None:
        self._pause, self._latest = pause, _latest()

    @workflow.run
    async def run(self, pause: QuotaPause) -> None:
        """Wait until the latest reported reset of the limit, at most a month after that report."""
        del pause
        while (left := min(self._pause.until, self._latest) - workflow.now().timestamp()) > 0:
            known = self._pause
            workflow.set_current_details(f"**{known.agent}** is paused: {known.message}")
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._pause != known,  # noqa: B023 -- the condition is checked in this round only
                    timeout=timedelta(seconds=left),
                    timeout_summary="until the usage limit resets",
                )

    @workflow.signal(description="An agent has reached the usage limit of this login.")
    def pause(self, pause: QuotaPause) -> None:
        """Wait longer if the limit resets later than known."""
        if pause.until > self._pause.until:
            self._pause, self._latest = pause, _latest()
            workflow.upsert_memo({MEMO: pause})


def _latest() -> float:
    """Return the latest allowed end of a pause that is reported now, in Unix seconds."""
    return workflow.now().timestamp() + LONGEST_PAUSE_SECONDS
