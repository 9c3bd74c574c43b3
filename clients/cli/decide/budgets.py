"""`septet budget`: show, set and raise budgets."""

from clients.cli.decide.options import BudgetsOptions, OneBudgetOptions, RaiseBudgetOptions, SetBudgetOptions
from clients.cli.render.budgets import show_budget, show_budgets, show_raise
from clients.cli.terminal.reply import CommandReply
from septet.contracts.amounts import parse_limit
from septet.contracts.budget import LimitCall, RaiseCall
from septet.contracts.decisions import parse_decision
from septet.contracts.replies import BudgetReply
from septet.errors import UsageError
from septet.settings import load_settings


async def list_budgets(options: BudgetsOptions) -> CommandReply:
    """Show the budgets: what was used, and how many work orders wait."""
    operations = await options.server.connect()
    answer = await operations.budgets.list(after=options.after, limit=options.limit)
    return CommandReply.from_reply(answer, lambda: show_budgets(answer))


async def show(options: OneBudgetOptions) -> CommandReply:
    """Show one budget: its limit, what was used by step and day, and who waits."""
    operations = await options.server.connect()
    return _reply(await operations.budgets.show(options.budget))


async def set_budget(options: SetBudgetOptions) -> CommandReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room."""
    call = _limit_call(options)
    operations = await options.server.connect()
    return _reply(await operations.budgets.set(options.budget, call))


async def raise_budget(options: RaiseBudgetOptions) -> CommandReply:
    """Raise a budget by an amount; work orders that wait for it continue."""
    seen = _limit(options.expected_limit, "--expected") if options.expected_limit else ""
    call = RaiseCall(**dict(_limit_call(options)), expected=seen)
    operations = await options.server.connect()
    reply = await operations.budgets.raise_limit(options.budget, call)
    return CommandReply.from_reply(reply, lambda: show_raise(reply, call.expected))


def _limit_call(options: SetBudgetOptions | RaiseBudgetOptions) -> LimitCall:
    if options.amount != "none":
        _limit(options.amount, "AMOUNT")
    return parse_decision(LimitCall, limit=options.amount, step=options.step, who=load_settings().user)


def _limit(text: str, name: str) -> str:
    """Return a limit in its plain form.

    Raises:
        UsageError: The text is not a limit.
    """
    try:
        return str(parse_limit(text))
    except ValueError as error:
        raise UsageError(f"{name} {error}.") from error


def _reply(answer: BudgetReply) -> CommandReply:
    return CommandReply.from_reply(answer, lambda: show_budget(answer.budget))
