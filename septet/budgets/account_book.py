"""Decide, from an account's state and the time, which turns may start and which work orders must request again."""

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
"""The most work orders that request again at a time when a budget has room; a work order that finds no room waits
again."""
_MOST_CALLED: Final = 100
"""The most work orders that request again at a time after a raise; more would fill one workflow task."""
_TOLD_WITHIN_SECONDS: Final = 600.0
"""The seconds after a turn's time limit in which its use may be reported; afterwards the account frees the amounts
that are reserved for the turn."""


class AccountBook:
    """Decides about the turns of one budget, and counts their use."""

    def __init__(self, state: AccountState) -> None:
        """Begin with the account's `state`."""
        self._amounts = AccountAmounts(state)
        self._waiting = {order_id: state.waiting_steps.get(order_id, "") for order_id in state.waiting}
        """The step whose limit a work order waits for, by work order, oldest first; empty for the whole budget's
        limit."""
        self._to_call = list(state.to_call or ())
        """The work orders that must request again once: all that waited at a raise, or when a new day began."""
        self._to_tell = list(self._waiting) if state.to_call is None and self._amounts.is_spent() else []
        """The work orders that waited for amounts of other turns, which are used up now. These work orders request
        again, so that Septet notifies people."""
        self._is_room_new = True
        """Whether the budget may have room for which no work order has requested again."""

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
        """Count the turn's use since the last report; return what its agent may use, or why it must wait."""
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
        """Count a turn's use and free its reserved amounts; ignore a turn that was counted before."""
        self.take_time(now)
        self._is_room_new = True
        self._count(call.key, call.used)

    def note_time(self) -> None:
        """Note that the last work orders of `take_callers` may have ended by now, so that others can request."""
        self._is_room_new = True

    def find_mistake(self, call: LimitCall) -> tuple[str, str]:
        """Return why the call cannot raise the limit, and a remedy; two empty strings if the call can."""
        return find_mistake(self._amounts, call)

    def is_expected(self, call: RaiseCall) -> bool:
        """Return whether the limit is still the one that the caller saw, or the caller named none."""
        return call.expected in {"", str(self._amounts.limit_of(call.step) or "")}

    def set_limit(self, call: LimitCall, *, raises: bool) -> None:
        """Set, remove or raise a limit; `take_callers` then returns all waiting work orders."""
        self._amounts.set_limit(call, raises=raises)
        self._to_call = list(self._waiting)

    def take_callers(self, now: datetime) -> list[str]:
        """Return the work orders that must request again now, and remove them from the waiting work orders.

        After a raise, all waiting work orders request again, some at a time. Otherwise a work order requests again
        only if the budget has new room, or if amounts that were reserved for other turns are used up.
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
        """Whether a waiting work order has room, so that `take_callers` is due again after a while."""
        return bool(self._find_room())

    @property
    def calls_more(self) -> bool:
        """Whether `take_callers` left work orders that must request again now."""
        return any(order_id in self._waiting for order_id in self._to_call)

    def day_ends_in(self, now: datetime) -> timedelta | None:
        """Return the time until the day ends if a work order waits for the next day; `None` otherwise."""
        if not self._waiting or not (self._amounts.is_daily() or self._waits_for_day_of_step):
            return None
        return next_midnight(now) - now

    def hold_ends_in(self, now: datetime) -> timedelta | None:
        """Return the time until a turn's amounts are freed, if a work order waits for amounts of other turns."""
        ends = [hold.ends_at for hold in self._amounts.open_holds() if hold.ends_at is not None]
        limiting = {self._limiting(step) for step in self._waiting.values()}
        if not ends or not any(self._amounts.is_held(step) for step in limiting):
            return None
        return timedelta(seconds=max(min(ends) - now.timestamp(), 0.0))

    def has_agents(self, now: datetime) -> bool:
        """Return whether an agent for which a part of the budget is reserved may still run."""
        return any((hold.ends_at or 0.0) > now.timestamp() for hold in self._amounts.open_holds())

    @property
    def view(self) -> AccountView:
        """The view of the budget for people."""
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
        """Return why the turn must wait, or else the amounts to reserve for it and the amounts for its agent."""
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
        """Count a turn's use, and note which work orders must request again if it has used up their limit."""
        for spent in self._amounts.count(key, use):
            waiting = [order_id for order_id, step in self._waiting.items() if spent in {"", step}]
            self._to_tell = [*self._to_tell, *waiting] if spent else waiting

    def take_time(self, now: datetime) -> None:
        """Begin a new day if the date has changed, and free the amounts of turns whose agents no longer run."""
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
        """Return the step if the step has a limit, or else the empty name, which stands for the whole budget."""
        return "" if self._amounts.limit_of(step) is None else step

    @property
    def _waits_for_day_of_step(self) -> bool:
        return any(self._is_daily_step(step) for step in self._waiting.values())

    def _is_daily_step(self, step: str) -> bool:
        return step != "" and self._amounts.is_daily(step)
