"""`septet budget`: what agents may use, who waits for more, and how that is changed."""

from typing import Annotated

from pydantic import Field

from clients.cli import options as given
from clients.cli.options import argument, completed_by, option
from clients.cli.render.budgets import show_budget, show_budgets, show_raise
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from septet.contracts.amounts import parse_limit
from septet.contracts.budget import LimitCall, RaiseCall
from septet.contracts.decisions import parse_decision
from septet.contracts.replies import BudgetReply
from septet.errors import UsageError

Scope = Annotated[
    str,
    argument(metavar="BUDGET", help="day, project/NAME, pipeline/ID, or a work order such as wo-42."),
]
Amount = Annotated[
    str, argument(metavar="AMOUNT", help="Such as 5usd, 2Mtok, 90min or 5usd,90min; 20usd/day for each day.")
]
Step = Annotated[
    str, option("--step", metavar="STEP", help="Only this step's limit.", completer=completed_by("steps"))
]

Expected = Annotated[
    str,
    option("--expected", metavar="LIMIT", help="Add nothing if the limit is no longer this one."),
]

_LIMIT_HELP = "How many to list at most, besides those of the day and of projects, which are on the first page."


async def list_budgets(
    *,
    after: given.Next = "",
    limit: Annotated[int, Field(ge=1, le=1000), option(metavar="N", help=_LIMIT_HELP)] = 200,
    server: Server = SERVER,
) -> CommandReply:
    """Show the budgets: what was used, and how many work orders wait."""
    operations = await server.connect()

    answer = await operations.budgets.list(after=after, limit=limit)
    return CommandReply.from_reply(answer, lambda: show_budgets(answer))


async def show(budget: Scope, /, *, server: Server = SERVER) -> CommandReply:
    """Show one budget: its limit, what was used by step and day, and who waits."""
    operations = await server.connect()
    return _reply(await operations.budgets.show(budget))


async def set_budget(
    budget: Scope, amount: Amount, /, *, step: Step = "", server: Server = SERVER
) -> CommandReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room."""
    call = _call(amount, step)
    operations = await server.connect()
    return _reply(await operations.budgets.set(budget, call))


async def raise_budget(
    budget: Scope, amount: Amount, /, *, step: Step = "", expected_limit: Expected = "", server: Server = SERVER
) -> CommandReply:
    """Raise a budget by an amount; work orders that wait for it continue."""
    call = _raise_call(amount, step, expected_limit)
    operations = await server.connect()
    reply = await operations.budgets.raise_limit(budget, call)
    return CommandReply.from_reply(reply, lambda: show_raise(reply, call.expected))


def _call(amount: str, step: str) -> LimitCall:

    if amount != "none":
        _limit(amount, "AMOUNT")
    return parse_decision(LimitCall, limit=amount, step=step, who=given.current_user())


def _raise_call(amount: str, step: str, expected_limit: str) -> RaiseCall:

    seen = _limit(expected_limit, "--expected") if expected_limit else ""
    return RaiseCall(**dict(_call(amount, step)), expected=seen)


def _limit(text: str, name: str) -> str:
    """Return a limit in its plain form.

    Raises:
        UsageError: It is written otherwise.
    """
    try:
        return str(parse_limit(text))
    except ValueError as error:
        raise UsageError(f"{name} {error}.") from error


def _reply(answer: BudgetReply) -> CommandReply:

    return CommandReply.from_reply(answer, lambda: show_budget(answer.budget))
