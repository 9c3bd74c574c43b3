"""The amounts of an account: limits, use, the amounts reserved for turns (*held*), and what is left.

A limit is named after its step; the empty name stands for the limit of the whole budget.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from septet.budgets.account import (
    DAY,
    DAY_SECONDS,
    DAYS_KEPT,
    MOST_HOLDS,
    ORDER,
    STEPS,
    AccountState,
    Caps,
    Hold,
    LimitCall,
    ReserveCall,
)
from septet.contracts.amounts import (
    NO_LIMIT,
    BudgetWait,
    Limit,
    Spending,
    amount_to_add,
    describe_spending,
    parse_limit,
)
from septet.contracts.names import REWORK
from septet.system.text import timestamp

_SHARE: Final = 0.1
"""The part of a limit that is reserved for a turn while no turn of its step has ended."""
_TOLD: Final = 0.9
"""The part of a reserved amount that the agent may use; the last request may exceed it."""


class AccountAmounts:
    """The limits of one account, and how much of each is used or reserved."""

    def __init__(self, state: AccountState) -> None:
        """Begin with an account's state."""
        self._state = state
        self._holds: dict[str, Hold] = {hold.key: hold for hold in state.holds}

    @property
    def state(self) -> AccountState:
        """The state from which the account's next workflow run starts."""
        return self._state.model_copy(update={"holds": tuple(self._holds.values())})

    def limit_of(self, step: str = "") -> Limit | None:
        """Return the limit of a step, or of the whole budget; `None` without a limit."""
        return self._state.step_limits.get(step) if step else self._state.limit

    def use_of(self, step: str = "") -> Spending:
        """Return the use that counts against a limit: for a daily limit today's use, otherwise all use."""
        if not step:
            return self._state.today if self.is_daily() else self._state.total
        by_step = self._state.today_by_step if self.is_daily(step) else self._state.by_step
        return by_step.get(step, Spending())

    def is_daily(self, step: str = "") -> bool:
        """Return whether a step, or the whole budget, has a limit that resets each day."""
        limit = self.limit_of(step)
        return limit is not None and limit.daily

    def is_spent(self, step: str = "") -> bool:
        """Return whether a step, or the whole budget, has a limit that is used up."""
        limit = self.limit_of(step)
        return limit is not None and min(_amounts_left(limit, self.use_of(step)).values()) <= 0

    def is_held(self, step: str = "") -> bool:
        """Return whether only other turns' reservations can make a turn wait: a limit is set and not used up."""
        return self.limit_of(step) is not None and not self.is_spent(step)

    def has_room(self, step: str = "") -> bool:
        """Return whether a turn could start: there is no limit, or some of it is neither used nor reserved."""
        limit = self.limit_of(step)
        return limit is None or min(self._left_of(step, limit).values()) > 0

    def room_for(self, call: ReserveCall, step: str, limit: Limit) -> tuple[Caps, Caps] | None:
        """Return what to reserve for a turn, and what its agent may use of that; `None` if the turn must wait."""
        left = self._left_of(step, limit)
        if step and self._is_single:
            return _whole(left)
        seen = self._state.dearest.get(call.step, Spending()).amounts
        share = {name: max(seen[name], amount * _SHARE) for name, amount in limit.amounts.items()}
        has_others = bool(self.open_holds(step))
        if any(left[name] <= 0 or (has_others and left[name] < share[name]) for name in left):
            return None
        if self._is_single or all(left[name] <= share[name] for name in left):
            return _whole(left)
        part = {name: min(left[name], share[name]) for name in left}
        return _caps(part), _caps({name: amount * _TOLD for name, amount in part.items()})

    def hold(self, hold: Hold) -> None:
        """Record the amounts reserved for a turn; of all such records, keep only the last `MOST_HOLDS`."""
        self._holds[hold.key] = hold
        while len(self._holds) > MOST_HOLDS:
            self._holds.pop(next(iter(self._holds)))

    def open_holds(self, step: str = "") -> list[Hold]:
        """Return the reservations for running agents of `step`; for an empty `step`, those of all steps."""
        return [hold for hold in self._holds.values() if hold.is_open and step in {"", hold.step}]

    def count(self, key: str, use: Spending) -> list[str]:
        """Count a turn's use and end its reservation; return the names of the limits that are now used up."""
        hold = self._holds.pop(key, None)
        if hold is None:
            return []
        state, step, more = self._state, hold.step or "other", use.since(hold.before)
        left = [name for name in ("", step) if not self.is_spent(name)]
        self._change(
            total=state.total.plus(more),
            today=state.today.plus(more),
            by_step={**state.by_step, step: state.by_step.get(step, Spending()).plus(more)},
            today_by_step={**state.today_by_step, step: state.today_by_step.get(step, Spending()).plus(more)},
            dearest={**state.dearest, step: state.dearest.get(step, Spending()).most(more)},
        )
        return [name for name in left if self.is_spent(name)]

    def give_up_older(self, call: ReserveCall) -> None:
        """End the open reservations of the work order's earlier turns, because their host may be gone."""
        for key, hold in self._holds.items():
            if hold.order_id == call.order_id and key != call.key and hold.is_open:
                self._holds[key] = hold.model_copy(update={"is_open": False})

    def free_ended(self, now: datetime) -> bool:
        """End the reservations of turns whose time limit is over; return whether there were any."""
        has_freed = False
        for hold in self.open_holds():
            if hold.ends_at is None:  # from an earlier release
                self._holds[hold.key] = hold.model_copy(update={"ends_at": now.timestamp() + DAY_SECONDS})
            elif hold.ends_at <= now.timestamp():
                self._holds[hold.key] = hold.model_copy(update={"is_open": False})
                has_freed = True
        return has_freed

    def turn_day(self, now: datetime) -> bool:
        """Begin a new day if the date has changed; return whether it has."""
        day, state = now.astimezone(UTC).date().isoformat(), self._state
        if day == state.day:
            return False
        days = (*state.days, (state.day, state.today)) if state.day else state.days
        self._change(day=day, today=Spending(), today_by_step={}, days=days[-DAYS_KEPT:])
        return True

    def take_limits(self, call: ReserveCall) -> None:
        """Set the limits that a turn's call names, unless they were set or removed before."""
        state = self._state
        if call.step_limit is not None and call.step not in {*state.step_limits, *state.unlimited}:
            self._change(step_limits={**state.step_limits, call.step: call.step_limit})
        if call.limit is not None and state.limit is None and "" not in state.unlimited:
            self._change(limit=call.limit)

    def set_limit(self, call: LimitCall, *, raises: bool) -> None:
        """Set or remove a limit, or with `raises` add an amount to the limit."""
        state, step = self._state, call.step
        limit = None if call.limit == NO_LIMIT else parse_limit(call.limit)
        before = self.limit_of(step)
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

    @property
    def _is_single(self) -> bool:
        """Whether the account is a work order's, so that only one agent at a time uses it."""
        return self._state.scope.startswith(f"{ORDER}/")

    def _left_of(self, step: str, limit: Limit) -> dict[str, float]:
        held = {} if step and self._is_single else self._amounts_held(step)
        return _amounts_left(limit, self.use_of(step), held)

    def _amounts_held(self, step: str) -> dict[str, float]:
        held = dict.fromkeys(("usd", "tokens", "seconds"), 0.0)
        for hold in self.open_holds(step):
            for name in held:
                held[name] += getattr(hold.caps, name) or 0.0
        return held

    def _change(self, **values: object) -> None:
        self._state = self._state.model_copy(update=values)


def next_midnight(now: datetime) -> datetime:
    """Return the next midnight in UTC, when daily limits reset."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)


def _amounts_left(limit: Limit, use: Spending, holds: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return how much is left of each limited amount."""
    taken = holds or {}
    return {name: most - use.amounts[name] - taken.get(name, 0.0) for name, most in limit.amounts.items()}


def _whole(rest: Mapping[str, float]) -> tuple[Caps, Caps] | None:
    """Return all that is left, as the reservation and as the agent's limits; `None` if an amount is at zero."""
    return (_caps(rest), _caps(rest)) if min(rest.values()) > 0 else None


def _caps(amounts: Mapping[str, float]) -> Caps:
    tokens = amounts.get("tokens")
    return Caps(
        usd=amounts.get("usd"), tokens=None if tokens is None else int(tokens), seconds=amounts.get("seconds")
    )


def describe_wait(amounts: AccountAmounts, step: str, limit: Limit, now: datetime) -> BudgetWait:
    """Return why a turn waits for a limit, with the command that helps."""
    scope, is_spent = amounts.state.scope, amounts.is_spent(step)
    kind, _, name = scope.partition("/")
    whose = f"the work order {name}" if kind == ORDER else f"the {kind} {name}" if name else "the day"
    if step:
        whose = "the rounds on the pull request" if step == REWORK else f"the step {step}"
    state = "is used up" if is_spent else "has too little left besides what running agents hold"
    turn = " It resets at midnight UTC." if limit.daily else ""
    return BudgetWait(
        scope=scope,
        step=step,
        limit=str(limit),
        message=f"The budget of {whose} {state}: {describe_spending(amounts.use_of(step), limit)}.",
        remedy=f"Raise it: `{raise_command(amounts, step)}`.{turn}",
        until=timestamp(next_midnight(now)) if limit.daily else None,
        is_spent=is_spent,
    )


def raise_command(amounts: AccountAmounts, step: str) -> str:
    """Return the command that raises the limit of a step or of the whole budget."""
    state, limit, option = amounts.state, amounts.limit_of(step), f" --step {step}" if step else ""
    by_step = state.today_by_step if amounts.is_daily(step) else state.by_step  # a query needs no patch
    use = by_step.get(step, Spending()) if step else amounts.use_of()
    amount = amount_to_add(limit, use) if limit is not None else "5usd"
    return f"septet budget raise {state.scope} {amount}{option}"


def find_unknown_step(step: str) -> tuple[str, str]:
    """Return a message and a remedy if a step is unknown; else two empty texts."""
    return ("", "") if step in {"", *STEPS} else (f"{step!r} is not a step.", f"Name one of {', '.join(STEPS)}.")


def find_mistake(amounts: AccountAmounts, call: LimitCall) -> tuple[str, str]:
    """Return why a limit cannot be raised as requested, and a remedy; two empty texts if it can."""
    state, step = amounts.state, call.step
    option = f" --step {step}" if step else ""
    if call.limit == NO_LIMIT:
        remedy = f"Remove it with `septet budget set {state.scope} {NO_LIMIT}{option}`."
        return f"`{NO_LIMIT}` is not an amount.", remedy
    whose = f"the step {step} of {state.scope}" if step else state.scope
    limit = amounts.limit_of(step)
    if limit is None:
        hints = (f" The step {name} has one: add `--step {name}`." for name in state.step_limits)
        limited = "" if step else "".join(hints)
        remedy = f"Set one with `septet budget set {state.scope} {call.limit}{option}`.{limited}"
        return f"The budget of {whose} has no limit to raise.", remedy
    more = parse_limit(call.limit)
    if more.amounts.keys() - limit.amounts.keys():
        message = f"The budget of {whose} is {limit}, and cannot be raised by {call.limit}."
        return message, f"Add an amount of the same kind, such as {amount_to_add(limit, Spending())}."
    if more.daily and not limit.daily:
        message = f"The budget of {whose} is {limit} in all, and cannot be raised by {call.limit}."
        add = f"Add an amount without `/day`, such as {amount_to_add(more, Spending())}"
        return message, f"{add}, or set another limit with `septet budget set {state.scope} {call.limit}{option}`."
    try:
        parse_limit(str(limit.plus(more)))
    except ValueError as error:
        message = f"The budget of {whose} is {limit}, and with {call.limit} more it {error}."
        remedy = f"Raise it by less, or remove it with `septet budget set {state.scope} {NO_LIMIT}{option}`."
        return message, remedy
    return "", ""
