"""An account's messages to people: why a work order waits, and which command raises a limit."""

from datetime import datetime

from septet.budgets.account_amounts import AccountAmounts, next_midnight
from septet.contracts.amounts import NO_LIMIT, Limit, Spending, amount_to_add, describe_spending, parse_limit
from septet.contracts.budget import ORDER, STEPS, BudgetWait, LimitCall
from septet.contracts.names import REWORK
from septet.system.timestamps import timestamp


def describe_wait(amounts: AccountAmounts, step: str, limit: Limit, now: datetime) -> BudgetWait:
    """Return why a turn waits for the limit of a step or of the whole budget, with the command that helps."""
    scope, is_spent = amounts.state.scope, amounts.is_spent(step)
    whose = _words_of_step(step) if step else _words_of(scope)
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
    """Return the command that raises the limit of a step or of the whole budget; safe in queries."""
    state, limit, option = amounts.state, amounts.limit_of(step), f" --step {step}" if step else ""
    by_step = state.today_by_step if amounts.is_daily(step) else state.by_step  # a query needs no patch
    use = by_step.get(step, Spending()) if step else amounts.use_of()
    amount = amount_to_add(limit, use) if limit is not None else "5usd"
    return f"septet budget raise {state.scope} {amount}{option}"


def find_unknown_step(step: str) -> tuple[str, str]:
    """Return a message and a remedy for an unknown step; empty strings for a known or an empty step."""
    return ("", "") if step in {"", *STEPS} else (f"{step!r} is not a step.", f"Name one of {', '.join(STEPS)}.")


def find_mistake(amounts: AccountAmounts, call: LimitCall) -> tuple[str, str]:
    """Return why the call cannot raise a limit, and a remedy; empty strings if the call can."""
    state, step = amounts.state, call.step
    option = f" --step {step}" if step else ""
    if call.limit == NO_LIMIT:
        remedy = f"Remove it with `septet budget set {state.scope} {NO_LIMIT}{option}`."
        return f"`{NO_LIMIT}` is not an amount.", remedy
    whose = f"the step {step} of {state.scope}" if step else state.scope
    limit = amounts.limit_of(step)
    if limit is None:
        limited = "" if step else "".join(_hint(name) for name in state.step_limits)
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


def _hint(step: str) -> str:
    return f" The step {step} has one: add `--step {step}`."


def _words_of(scope: str) -> str:
    kind, _, name = scope.partition("/")
    if not name:
        return "the day"
    return f"the work order {name}" if kind == ORDER else f"the {kind} {name}"


def _words_of_step(step: str) -> str:
    return "the rounds on the pull request" if step == REWORK else f"the step {step}"
