"""`septet budget`: what agents may use, who waits for more, and how that is changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from clients.cli import options as given
from clients.cli.grouped_help import command_group
from clients.cli.reply import CommandReply
from septet.errors import UsageError

if TYPE_CHECKING:
    from clients.operations import Operations
    from septet.contracts.budget import LimitCall, RaiseCall
    from septet.contracts.replies import BudgetReply

app = command_group("budget", "Show, set and raise budgets.")

Scope = Annotated[
    str,
    typer.Argument(metavar="BUDGET", help="day, project/NAME, pipeline/ID, or a work order such as wo-42."),
]
Amount = Annotated[
    str, typer.Argument(metavar="AMOUNT", help="Such as 5usd, 2Mtok, 90min or 5usd,90min; 20usd/day for each day.")
]
Step = Annotated[
    str, typer.Option("--step", metavar="STEP", help="Only this step's limit.", autocompletion=given.complete_step)
]

Expected = Annotated[
    str,
    typer.Option("--expected", metavar="LIMIT", help="Add nothing if the limit is no longer this one."),
]

_LIMIT_HELP = "How many to list at most, besides those of the day and of projects, which are on the first page."


@app.command("list")
@given.give_operations
async def list_budgets(
    operations: "Operations",
    after: given.Next = "",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help=_LIMIT_HELP)] = 200,
) -> CommandReply:
    """Show the budgets: what was used, and how many work orders wait.

    Example: septet budget list
    """
    from clients.cli.render.budgets import show_budgets

    answer = await operations.budgets.list(after=after, limit=limit)
    return CommandReply.from_reply(answer, lambda: show_budgets(answer))


@app.command()
@given.give_operations
async def show(operations: "Operations", budget: Scope) -> CommandReply:
    """Show one budget: its limit, what was used by step and day, and who waits.

    Example: septet budget show day
    """
    return _reply(await operations.budgets.show(budget))


def _check_amount(amount: str, step: str, **_: object) -> None:
    """See whether the amount and the step can be read."""
    _call(amount, step)


@app.command("set")
@given.check_first(_check_amount)
async def set_budget(operations: "Operations", budget: Scope, amount: Amount, step: Step = "") -> CommandReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room.

    Example: septet budget set project/o/r 20usd/day
    """
    return _reply(await operations.budgets.set(budget, _call(amount, step)))


def _check_raise(amount: str, step: str, expected_limit: str, **_: object) -> None:
    """See whether the amount, the step and the expected limit can be read."""
    _raise_call(amount, step, expected_limit)


@app.command("raise")
@given.check_first(_check_raise)
async def raise_budget(
    operations: "Operations", budget: Scope, amount: Amount, step: Step = "", expected_limit: Expected = ""
) -> CommandReply:
    """Raise a budget by an amount; work orders that wait for it continue.

    Example: septet budget raise wo-42 5usd
    """
    from clients.cli.render.budgets import show_raise

    call = _raise_call(amount, step, expected_limit)
    reply = await operations.budgets.raise_limit(budget, call)
    return CommandReply.from_reply(reply, lambda: show_raise(reply, call.expected))


def _call(amount: str, step: str) -> "LimitCall":
    from septet.contracts.budget import LimitCall
    from septet.contracts.decisions import parse_decision

    if amount != "none":
        _limit(amount, "AMOUNT")
    return parse_decision(LimitCall, limit=amount, step=step, who=given.current_user())


def _raise_call(amount: str, step: str, expected_limit: str) -> "RaiseCall":
    from septet.contracts.budget import RaiseCall

    seen = _limit(expected_limit, "--expected") if expected_limit else ""
    return RaiseCall(**dict(_call(amount, step)), expected=seen)


def _limit(text: str, name: str) -> str:
    """Return a limit in its plain form.

    Raises:
        UsageError: It is written otherwise.
    """
    from septet.contracts.amounts import parse_limit

    try:
        return str(parse_limit(text))
    except ValueError as error:
        raise UsageError(f"{name} {error}.") from error


def _reply(answer: "BudgetReply") -> CommandReply:
    from clients.cli.render.budgets import show_budget

    return CommandReply.from_reply(answer, lambda: show_budget(answer.budget))
