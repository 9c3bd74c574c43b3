"""Decide for one account which turns may start, and which waiting work orders must repeat their request."""

from datetime import datetime, timedelta
from typing import Final

from septet.budgets.account import (
    MOST_WAITING,
    AccountState,
    AccountView,
    Caps,
    Grant,
    Hold,
    LimitCall,
    RaiseCall,
    ReserveCall,
    SettleCall,
)
from septet.budgets.account_amounts import (
    AccountAmounts,
    describe_wait,
    find_mistake,
    next_midnight,
    raise_command,
)
from septet.contracts.amounts import BudgetWait, Spending
from septet.contracts.names import watched_order

_FEW_CALLED: Final = 10
"""The most waiting work orders that request again together when a budget has room."""
_MOST_CALLED: Final = 100
"""The most waiting work orders that request again together after a raise, so that they fit into one workflow
task."""
_TOLD_WITHIN_SECONDS: Final = 600.0
"""How many seconds a report may come after its turn's time limit; later, the turn's reservation ends."""


class AccountBook:
    """Decides about the turns of one budget, and counts their use."""

    def __init__(self, state: AccountState) -> None:
        """Begin with an account's state."""
        self._amounts = AccountAmounts(state)
        self._waiting = {order_id: state.waiting_steps.get(order_id, "") for order_id in state.waiting}
        """For each waiting work order, oldest first, the step whose limit it waits for; empty for the whole
        budget."""
        self._to_call = list(state.to_call or ())
        """The work orders that must request one more time, because of a raise or a new day."""
        self._to_tell = list(self._waiting) if state.to_call is None and self._amounts.is_spent() else []
        """The work orders that waited for reserved amounts which are now used up; they request again, and people
        are then notified."""
        self._is_room_new = True
        """Whether there may be room that no work order has requested yet."""

    @property
    def state(self) -> AccountState:
        """The state from which the account's next workflow run starts."""
        steps = {order_id: step for order_id, step in self._waiting.items() if step}
        return self._amounts.state.model_copy(
            update={
                "waiting": tuple(self._waiting),
                "waiting_steps": steps,
                "to_call": tuple(dict.fromkeys([*self._to_call, *self._to_tell])),
                "read_at": None,
            }
        )

    def reserve(self, call: ReserveCall, now: datetime) -> Grant:
        """Count what the turn has used since its last report; return what it may use now, or why it must wait."""
        self.take_time(now)
        self._count(call.key, call.so_far)
        self._amounts.give_up_older(call)
        self._amounts.take_limits(call)
        decision = self._decide(call, now)
        if isinstance(decision, BudgetWait):
            has_room = call.order_id in self._waiting or len(self._waiting) < MOST_WAITING
            if has_room:
                self._waiting[call.order_id] = decision.step
            return Grant(granted=False, wait=decision, is_listed=has_room)
        held, told = decision
        self._is_room_new = True  # a waiting work order may find room beside this turn
        self._waiting.pop(call.order_id, None)
        self._amounts.hold(
            Hold(
                key=call.key,
                order_id=call.order_id,
                step=call.step,
                before=call.so_far,
                caps=held,
                ends_at=now.timestamp() + call.wall_seconds + _TOLD_WITHIN_SECONDS,
            )
        )
        return Grant(caps=told)

    def settle(self, call: SettleCall, now: datetime) -> None:
        """Count a turn's use and end its reservation; ignore a repeated report."""
        self.take_time(now)
        self._is_room_new = True
        self._count(call.key, call.used)

    def note_time(self) -> None:
        """After a wait without messages, let `take_callers` look for room: its last callers may have ended."""
        self._is_room_new = True

    def find_mistake(self, call: LimitCall) -> tuple[str, str]:
        """Return why the limit cannot be raised as requested, and a remedy; two empty texts if it can."""
        return find_mistake(self._amounts, call)

    def is_expected(self, call: RaiseCall) -> bool:
        """Return whether the limit is the limit that `call` expects; true if `call` names no expected limit."""
        return call.expected in {"", str(self._amounts.limit_of(call.step) or "")}

    def set_limit(self, call: LimitCall, *, raises: bool) -> None:
        """Set, remove or raise a limit; all waiting work orders must then repeat their request."""
        self._amounts.set_limit(call, raises=raises)
        self._to_call = list(self._waiting)

    def take_callers(self, now: datetime) -> list[str]:
        """Return the work orders that must repeat their request now, and no longer count them as waiting.

        If a limit was set or used up, or a new day began, this returns all affected work orders, up to
        `_MOST_CALLED` per call. Otherwise, this returns a few for which there is new room.
        """
        self.take_time(now)
        self._to_call += self._to_tell
        self._to_tell = []
        if to_call := [order_id for order_id in dict.fromkeys(self._to_call) if order_id in self._waiting]:
            callers, self._to_call = to_call[:_MOST_CALLED], to_call[_MOST_CALLED:]
        else:
            callers = self._find_room()[:_FEW_CALLED] if self._is_room_new else []
        self._is_room_new = False
        for order_id in callers:
            del self._waiting[order_id]
        return callers

    @property
    def calls_again(self) -> bool:
        """Whether there is room for a waiting work order, which a later `take_callers` can return."""
        return bool(self._find_room())

    @property
    def calls_more(self) -> bool:
        """Whether `take_callers` must be called again at once, because it left out some work orders."""
        return any(order_id in self._waiting for order_id in self._to_call)

    def day_ends_in(self, now: datetime) -> timedelta | None:
        """Return the time until midnight if a work order waits for a new day; else `None`."""
        if not self._waiting or not (self._amounts.is_daily() or self._waits_for_day_of_step):
            return None
        return next_midnight(now) - now

    def hold_ends_in(self, now: datetime) -> timedelta | None:
        """Return the time to the next end of a reservation, if a work order waits for such an end; else `None`."""
        ends = [hold.ends_at for hold in self._amounts.open_holds() if hold.ends_at is not None]
        limiting = {self._limiting(step) for step in self._waiting.values()}
        if not ends or not any(self._amounts.is_held(step) for step in limiting):
            return None
        return timedelta(seconds=max(min(ends) - now.timestamp(), 0.0))

    def has_agents(self, now: datetime) -> bool:
        """Return whether an agent with a reservation can still be running."""
        return any((hold.ends_at or 0.0) > now.timestamp() for hold in self._amounts.open_holds())

    @property
    def view(self) -> AccountView:
        """The budget as people see it."""
        state, waiting = self._amounts.state, tuple(self._waiting)
        steps = (step for order_id, step in self._waiting.items() if order_id not in self._to_call)
        limited = next((step for step in steps if self._amounts.limit_of(step) is not None), None)
        return AccountView(
            scope=state.scope,
            limit=str(state.limit or ""),
            step_limits={step: str(limit) for step, limit in state.step_limits.items()},
            spent=self._amounts.use_of(),
            total=state.total,
            by_step=state.by_step,
            today_by_step=state.today_by_step,
            day=state.day,
            today=state.today,
            days=state.days,
            running=len(self._amounts.open_holds()),
            waiting=tuple(watched_order(each) for each in waiting[:20]),
            waiting_count=len(waiting),
            # The command helps the first waiting work order that is not about to request again.
            remedy="" if limited is None else f"`{raise_command(self._amounts, limited)}`",
        )

    def _decide(self, call: ReserveCall, now: datetime) -> BudgetWait | tuple[Caps, Caps]:
        """Return why the turn must wait, or else what to reserve for it and what its agent may use."""
        held, told = Caps(), Caps()
        for step in (call.step, ""):
            limit = self._amounts.limit_of(step)
            if limit is None:
                continue
            room = self._amounts.room_for(call, step, limit)
            if room is None:
                return describe_wait(self._amounts, step, limit, now)
            held, told = held.lowered(room[0]), told.lowered(room[1])
        return held, told

    def _count(self, key: str, use: Spending) -> None:
        """Count a turn's use; if a limit is now used up, the work orders that wait for it must request again."""
        for spent in self._amounts.count(key, use):
            waiting = [order_id for order_id, step in self._waiting.items() if spent in {"", step}]
            self._to_tell = [*self._to_tell, *waiting] if spent else waiting

    def take_time(self, now: datetime) -> None:
        """Begin a new day if the date has changed, and end the reservations whose time is over."""
        if self._amounts.turn_day(now):
            if self._amounts.is_daily():
                self._to_call = list(self._waiting)
            elif self._waits_for_day_of_step:
                waiting = self._waiting.items()
                self._to_call += [order_id for order_id, step in waiting if self._is_daily_step(step)]
        if self._amounts.free_ended(now):
            self._is_room_new = True

    def _find_room(self) -> list[str]:
        waiting = self._waiting.items()
        return [order_id for order_id, step in waiting if self._amounts.has_room(self._limiting(step))]

    def _limiting(self, step: str) -> str:
        """Return the name of the limit that applies: the step's if it has one, else the whole budget's."""
        return "" if self._amounts.limit_of(step) is None else step

    @property
    def _waits_for_day_of_step(self) -> bool:
        return any(self._is_daily_step(step) for step in self._waiting.values())

    def _is_daily_step(self, step: str) -> bool:
        return step != "" and self._amounts.is_daily(step)
