"""What an account grants and counts: pure decisions over its state, each by the clock that it is given."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from septet.contracts.amounts import NO_LIMIT, Limit, Spending, amount_to_add, describe_spending, parse_limit
from septet.contracts.budget import (
    DAY,
    DAY_SECONDS,
    DAYS_KEPT,
    MOST_HOLDS,
    MOST_WAITING,
    ORDER,
    AccountState,
    AccountView,
    BudgetWait,
    Caps,
    Grant,
    Hold,
    LimitCall,
    ReserveCall,
    SettleCall,
)
from septet.contracts.names import REWORK
from septet.contracts.pull_request_names import watched_order
from septet.system.timestamps import timestamp

_SHARE: Final = 0.1
"""Of the limit: what a turn holds where none of its step was seen yet and others may run beside it."""
_TOLD: Final = 0.9
"""Of a share: where the agent is asked to end, for the request that passes it is paid too."""
_FEW_CALLED: Final = 10
"""Where some room has come free: those who find none wait again."""
_MOST_CALLED: Final = 100
"""After a raise: more would fill one workflow task."""
_WAITING_SHOWN: Final = 20
_TOLD_WITHIN_SECONDS: Final = 600.0
"""So long an agent that has reached its time limit may take to end, and its worker to tell what it used."""


class AccountBook:
    """One budget's account."""

    def __init__(self, state: AccountState, has_patch: Callable[[], bool] = lambda: True) -> None:
        """Go on from a state.

        Args:
            state: What is known.
            has_patch: Asks for the patch before which the limit of a step knew neither days nor what others hold,
                and a hold had no end. Asked for only where that matters.
        """
        self._state = state
        self._has_patch = has_patch
        self._holds: dict[str, Hold] = {hold.key: hold for hold in state.holds}
        self._waiting = {order_id: state.waiting_steps.get(order_id, "") for order_id in state.waiting}
        """By work order, oldest first: the step whose limit it waits for; empty for the whole budget."""
        self._to_call = list(state.to_call or ())
        """Those that are to ask again, each once: all who waited at a raise, or as a new day began."""
        self._to_tell = list(self._waiting) if state.to_call is None and self._is_spent else []
        """Those that waited while others held the rest, which is used up now: they ask again, so that people are
        told."""
        self._is_room_new = True
        """Whether there may be room that nobody was called for."""

    @property
    def state(self) -> AccountState:
        """What the next run of the account has to know."""
        steps = {order_id: step for order_id, step in self._waiting.items() if step}
        return self._state.model_copy(
            update={
                "holds": tuple(self._holds.values()),
                "waiting": tuple(self._waiting),
                "waiting_steps": steps,
                "to_call": tuple(dict.fromkeys([*self._to_call, *self._to_tell])),
            }
        )

    def reserve(self, call: ReserveCall, now: datetime) -> Grant:
        """Answer whether an agent may start; what its turn used since the last word is counted first."""
        self._take_time(now)
        self._count(self._holds.pop(call.key, None), call.so_far)
        self._give_up_older(call)
        self._take_limits(call)
        decision = self._decide(call, now)
        if isinstance(decision, BudgetWait):
            self._waiting[call.order_id] = decision.step
            while len(self._waiting) > MOST_WAITING:
                self._waiting.pop(next(iter(self._waiting)))
            return Grant(granted=False, wait=decision)
        held, told = decision
        self._is_room_new = True  # who waits may find a place beside it
        self._waiting.pop(call.order_id, None)
        self._holds[call.key] = Hold(
            key=call.key,
            order_id=call.order_id,
            step=call.step,
            before=call.so_far,
            caps=held,
            ends_at=now.timestamp() + call.wall_seconds + _TOLD_WITHIN_SECONDS,
        )
        while len(self._holds) > MOST_HOLDS:
            self._holds.pop(next(iter(self._holds)))
        return Grant(caps=told)

    def settle(self, call: SettleCall, now: datetime) -> None:
        """Count what a turn used; one that is not open was counted before."""
        self._take_time(now)
        self._is_room_new = True
        self._count(self._holds.pop(call.key, None), call.used)

    def note_time(self) -> None:
        """Take it that a while has passed: who was called last may have ended meanwhile."""
        self._is_room_new = True

    def find_mistake(self, call: LimitCall) -> tuple[str, str]:
        """Return why a limit cannot be raised so, and what helps; nothing where it can."""
        state, step = self._state, call.step
        if call.limit == NO_LIMIT:
            option = f" --step {step}" if step else ""
            remedy = f"Remove it with `septet budget set {state.scope} {NO_LIMIT}{option}`."
            return f"`{NO_LIMIT}` is not an amount.", remedy
        whose = f"the step {step} of {state.scope}" if step else state.scope
        limit = state.step_limits.get(step) if step else state.limit
        if limit is None:
            option = f" --step {step}" if step else ""
            limited = (
                ""
                if step
                else "".join(f" The step {name} has one: add `--step {name}`." for name in state.step_limits)
            )
            remedy = f"Set one with `septet budget set {state.scope} {call.limit}{option}`.{limited}"
            return f"The budget of {whose} has no limit to raise.", remedy
        if parse_limit(call.limit).amounts.keys() - limit.amounts.keys():
            message = f"The budget of {whose} is {limit}, and cannot be raised by {call.limit}."
            return message, f"Add an amount of the same kind, such as {amount_to_add(limit, Spending())}."
        return "", ""

    def set_limit(self, call: LimitCall, *, raises: bool) -> None:
        """Set the limit, remove it, or raise it; who waits asks again."""
        state, step = self._state, call.step
        limit = None if call.limit == NO_LIMIT else parse_limit(call.limit)
        before = state.step_limits.get(step) if step else state.limit
        if limit is not None and raises and before is not None:
            limit = before.plus(limit)
        if limit is not None and state.scope == DAY:
            limit = limit.model_copy(update={"daily": True})
        others = tuple(each for each in state.unlimited if each != step)
        self._change(unlimited=others if limit is not None else (*others, step))
        if step:
            limits = {**state.step_limits, step: limit}
            self._change(step_limits={name: each for name, each in limits.items() if each is not None})
        else:
            self._change(limit=limit)
        self._to_call = list(self._waiting)

    def _take_limits(self, call: ReserveCall) -> None:
        """Take the limits that a turn brings, as far as nobody has set or removed another one."""
        state = self._state
        if call.step_limit is not None and call.step not in {*state.step_limits, *state.unlimited}:
            self._change(step_limits={**state.step_limits, call.step: call.step_limit})
        if call.limit is not None and state.limit is None and "" not in state.unlimited and self._has_patch():
            self._change(limit=call.limit)

    def turn_day(self, now: datetime) -> None:
        """Begin a new day, where it is one."""
        day, state = now.astimezone(UTC).date().isoformat(), self._state
        if day == state.day:
            return
        days = (*state.days, (state.day, state.today)) if state.day else state.days
        self._change(day=day, today=Spending(), today_by_step={}, days=days[-DAYS_KEPT:])
        if self._is_daily:
            self._to_call = list(self._waiting)
        elif self._waits_for_day_of_step:
            self._to_call += [order_id for order_id, step in self._waiting.items() if self._is_daily_step(step)]

    def take_callers(self, now: datetime, *, by_news: bool = True) -> list[str]:
        """Return work orders that are to ask again now, and wait no more: all, some at a time, after a raise.

        Args:
            now: The time.
            by_news: Call only those for whom there is news since the last time: there may be room, or what others
                held is used up. Else, as it was once, who is refused is called again at once where the whole
                budget has any room.
        """
        self._take_time(now)
        if by_news:
            self._to_call += self._to_tell
        callers, self._to_tell = self._callers(by_news=by_news), []
        self._is_room_new = False
        for order_id in callers:
            del self._waiting[order_id]
        return callers

    def _callers(self, *, by_news: bool) -> list[str]:
        if to_call := [order_id for order_id in dict.fromkeys(self._to_call) if order_id in self._waiting]:
            self._to_call = to_call[_MOST_CALLED:]
            return to_call[:_MOST_CALLED]
        if not by_news:
            return list(self._waiting)[:_FEW_CALLED] if self.has_room else []
        return self._find_room()[:_FEW_CALLED] if self._is_room_new else []

    def _find_room(self) -> list[str]:
        """Return those that wait for whom there is any room."""
        return [order_id for order_id, step in self._waiting.items() if self._has_room_for(step)]

    def _has_room_for(self, step: str) -> bool:
        limit = self._state.step_limits.get(step)
        return self.has_room if limit is None else min(self._left_of_step(step, limit).values()) > 0

    @property
    def calls_again(self) -> bool:
        """Whether there is room for some of those that wait: they are called again after a while."""
        return bool(self._find_room())

    @property
    def calls_more(self) -> bool:
        """Whether more of those that wait are to be called at once."""
        return any(order_id in self._waiting for order_id in self._to_call)

    def day_ends_in(self, now: datetime) -> timedelta | None:
        """Return how long the day lasts for which somebody waits; `None` where nobody does."""
        if not self._waiting or not (self._is_daily or self._waits_for_day_of_step):
            return None
        return _next_midnight(now) - now

    def hold_ends_in(self, now: datetime) -> timedelta | None:
        """Return when the first hold ends by itself for whose end somebody waits; `None` where nobody does."""
        ends = [hold.ends_at for hold in self._open_holds() if hold.ends_at is not None]
        if (
            not ends
            or not any(self._is_held(step) for step in set(self._waiting.values()))
            or not self._has_patch()
        ):
            return None
        return timedelta(seconds=max(min(ends) - now.timestamp(), 0.0))

    @property
    def has_room(self) -> bool:
        """Whether there is anything left that nobody holds."""
        limit = self._state.limit
        return limit is None or min(_amounts_left(limit, self._counted_use, self._amounts_held()).values()) > 0

    @property
    def waits(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits and nothing is held."""
        return not self._waiting and not self._holds

    @property
    def view(self) -> AccountView:
        """The budget as people see it."""
        state, waiting = self._state, tuple(self._waiting)
        return AccountView(
            scope=state.scope,
            limit=str(state.limit or ""),
            step_limits={step: str(limit) for step, limit in state.step_limits.items()},
            spent=self._counted_use,
            total=state.total,
            by_step=state.by_step,
            today_by_step=state.today_by_step,
            days=state.days,
            running=len(self._open_holds()),
            waiting=tuple(watched_order(each) for each in waiting[:_WAITING_SHOWN]),
            waiting_count=len(waiting),
            remedy=f"`{self._raise_command(self._waiting[waiting[0]])}`" if waiting else "",
        )

    @property
    def _is_daily(self) -> bool:
        return self._state.limit is not None and self._state.limit.daily

    @property
    def _is_spent(self) -> bool:
        limit = self._state.limit
        return limit is not None and _is_used_up(limit, self._counted_use)

    @property
    def _is_single(self) -> bool:
        """Whether one agent at a time uses it."""
        return self._state.scope.startswith(f"{ORDER}/")

    @property
    def _counted_use(self) -> Spending:
        return self._state.today if self._is_daily else self._state.total

    def _open_holds(self, step: str = "") -> list[Hold]:
        """Return what turns hold that may still run: those of a step, or all."""
        return [hold for hold in self._holds.values() if hold.is_open and step in {"", hold.step}]

    def _amounts_held(self, step: str = "") -> Mapping[str, float]:
        held = dict.fromkeys(("usd", "tokens", "seconds"), 0.0)
        for hold in self._open_holds(step):
            for name in held:
                held[name] += getattr(hold.caps, name) or 0.0
        return held

    @property
    def _shares_steps(self) -> bool:
        """Whether several agents hold parts of the limit of a step."""
        return not self._is_single and self._has_patch()

    def _is_daily_step(self, step: str) -> bool:
        limit = self._state.step_limits.get(step)
        return limit is not None and limit.daily

    @property
    def _waits_for_day_of_step(self) -> bool:
        """Whether anybody waits for the daily limit of a step."""
        return any(self._is_daily_step(step) for step in self._waiting.values()) and self._has_patch()

    def _use_of_step(self, step: str) -> Spending:
        """Return what counts against the limit of a step."""
        is_daily = self._is_daily_step(step) and self._has_patch()
        by_step = self._state.today_by_step if is_daily else self._state.by_step
        return by_step.get(step, Spending())

    def _left_of_step(self, step: str, limit: Limit) -> dict[str, float]:
        """Return what is left of a step's limit that nobody holds."""
        held = self._amounts_held(step) if self._shares_steps else None
        return _amounts_left(limit, self._use_of_step(step), held)

    def _is_held(self, step: str) -> bool:
        """Say whether others hold what is left of a limit that is not used up."""
        limit = self._state.step_limits.get(step)
        if limit is not None:
            return not _is_used_up(limit, self._use_of_step(step))
        return self._state.limit is not None and not self._is_spent

    def _decide(self, call: ReserveCall, now: datetime) -> BudgetWait | tuple[Caps, Caps]:
        """Return why the turn has to wait; else what it holds, and where its agent is asked to end."""
        state, held, told = self._state, Caps(), Caps()
        step_limit = state.step_limits.get(call.step)
        if step_limit is not None:
            left = self._left_of_step(call.step, step_limit)
            others = self._open_holds(call.step)
            room = self._room(step_limit, left, call.step, others) if self._shares_steps else _whole(left)
            if room is None:
                return self._wait(step_limit, self._use_of_step(call.step), now, call.step)
            held, told = room
        if state.limit is not None:
            left = _amounts_left(state.limit, self._counted_use, self._amounts_held())
            room = self._room(state.limit, left, call.step, self._open_holds())
            if room is None:
                return self._wait(state.limit, self._counted_use, now, "")
            held, told = held.lowered(room[0]), told.lowered(room[1])
        return held, told

    def _room(
        self, limit: Limit, rest: Mapping[str, float], step: str, others: Sequence[Hold]
    ) -> tuple[Caps, Caps] | None:
        """Return what a turn of a step may hold of a limit, and where its agent is asked to end."""
        share = self._share(limit, step)
        if any(rest[name] <= 0 or (others and rest[name] < share[name]) for name in rest):
            return None
        if self._is_single or all(rest[name] <= share[name] for name in rest):
            return _whole(rest)
        part = {name: min(rest[name], share[name]) for name in rest}
        return _caps(part), _caps({name: amount * _TOLD for name, amount in part.items()})

    def _share(self, limit: Limit, step: str) -> dict[str, float]:
        """Return what a turn of a step is to hold: as much as the dearest so far, or a part of the limit."""
        seen = self._state.dearest.get(step, Spending()).amounts
        return {name: max(seen[name], amount * _SHARE) for name, amount in limit.amounts.items()}

    def _wait(self, limit: Limit, use: Spending, now: datetime, step: str) -> BudgetWait:
        scope = self._state.scope
        whose = _words_of_step(step) if step else _words_of(scope)
        is_spent = _is_used_up(limit, use)
        state = "is used up" if is_spent else "has too little left besides what running agents hold"
        turn = " It resets at midnight UTC." if limit.daily else ""
        return BudgetWait(
            scope=scope,
            step=step,
            limit=str(limit),
            message=f"The budget of {whose} {state}: {describe_spending(use, limit)}.",
            remedy=f"Raise it with `{self._raise_command(step)}`.{turn}",
            until=timestamp(_next_midnight(now)) if limit.daily else None,
            is_spent=is_spent,
        )

    def _raise_command(self, step: str) -> str:
        """Return the command that raises the limit of a step, or of the whole budget."""
        state, option = self._state, f" --step {step}" if step else ""
        limit = state.step_limits.get(step) if step else state.limit
        by_step = state.today_by_step if self._is_daily_step(step) else state.by_step
        use = by_step.get(step, Spending()) if step else self._counted_use
        amount = amount_to_add(limit, use) if limit is not None else "5usd"
        return f"septet budget raise {state.scope} {amount}{option}"

    def _count(self, hold: Hold | None, use: Spending) -> None:
        """Count what a turn used beyond what was counted of it."""
        if hold is None:
            return
        state, step, more = self._state, hold.step or "other", use.since(hold.before)
        was_spent, was_step_spent = self._is_spent, self._is_step_spent(step)
        self._change(
            total=state.total.plus(more),
            today=state.today.plus(more),
            by_step={**state.by_step, step: state.by_step.get(step, Spending()).plus(more)},
            today_by_step={**state.today_by_step, step: state.today_by_step.get(step, Spending()).plus(more)},
            dearest={**state.dearest, step: state.dearest.get(step, Spending()).most(more)},
        )
        if self._is_spent and not was_spent:
            self._to_tell = list(self._waiting)
        if self._is_step_spent(step) and not was_step_spent:
            self._to_tell += [order_id for order_id, waits_for in self._waiting.items() if waits_for == step]

    def _is_step_spent(self, step: str) -> bool:
        limit = self._state.step_limits.get(step)
        return limit is not None and _is_used_up(limit, self._use_of_step(step))

    def _take_time(self, now: datetime) -> None:
        """Begin a new day, where it is one, and free what turns hold whose agents do not run any longer."""
        self.turn_day(now)
        for hold in self._open_holds():
            if hold.ends_at is None:  # of an earlier release
                self._holds[hold.key] = hold.model_copy(update={"ends_at": now.timestamp() + DAY_SECONDS})
            elif hold.ends_at <= now.timestamp() and self._has_patch():
                self._holds[hold.key] = hold.model_copy(update={"is_open": False})
                self._is_room_new = True

    def _give_up_older(self, call: ReserveCall) -> None:
        """Free what an earlier turn of the work order held, of which nobody told the end: its host may be gone."""
        for key, hold in self._holds.items():
            if hold.order_id == call.order_id and key != call.key and hold.is_open:
                self._holds[key] = hold.model_copy(update={"is_open": False})

    def _change(self, **values: object) -> None:
        self._state = self._state.model_copy(update=values)


def _amounts_left(limit: Limit, use: Spending, holds: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return what is left of each amount that is limited; there is at least one."""
    taken = holds or {}
    return {name: most - use.amounts[name] - taken.get(name, 0.0) for name, most in limit.amounts.items()}


def _is_used_up(limit: Limit, use: Spending) -> bool:
    return min(_amounts_left(limit, use).values()) <= 0


def _whole(rest: Mapping[str, float]) -> tuple[Caps, Caps] | None:
    """Return all that is left as what a turn holds and as its agent's bound; `None` where nothing is left."""
    return (_caps(rest), _caps(rest)) if min(rest.values()) > 0 else None


def _caps(amounts: Mapping[str, float]) -> Caps:
    tokens = amounts.get("tokens")
    return Caps(
        usd=amounts.get("usd"), tokens=None if tokens is None else int(tokens), seconds=amounts.get("seconds")
    )


def _words_of(scope: str) -> str:
    kind, _, name = scope.partition("/")
    if not name:
        return "the day"
    return f"the work order {name}" if kind == ORDER else f"the {kind} {name}"


def _words_of_step(step: str) -> str:
    return "the rounds on the pull request" if step == REWORK else f"the step {step}"


def _next_midnight(now: datetime) -> datetime:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)
