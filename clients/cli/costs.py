"""`septet costs`: what agents have cost so far."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply
from septet.contracts.names import CostKey
from septet.errors import UsageError

if TYPE_CHECKING:
    from clients.operations import Operations

app = Commands()
_WEEK: Final = re.compile(r"[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])")
_AGE: Final = re.compile(r"([0-9]{1,4})([dw])")
_DAYS: Final = {"d": 1, "w": 7}


def _check_since(since: str, **_: object) -> None:
    """See whether the week can be read."""
    _week_of(since)


@app.command()
@given.check_first(_check_since)
async def costs(
    operations: "Operations",
    by: Annotated[CostKey, typer.Option(help="Group by this.")] = "project",
    since: Annotated[
        str,
        typer.Option(metavar="WEEK", help="Count from this week on: 2026-W40, 4w or 30d.", show_default=False),
    ] = "",
    project: Annotated[str, typer.Option(metavar="PROJECT", help="Only this project.", show_default=False)] = "",
) -> CommandReply:
    """Show what agents have cost: dollars, tokens and minutes.

    Example: septet costs --by week --project o/r
    """
    from clients.cli.render.costs import show_costs

    answer = await operations.costs.show(by, _week_of(since), project)
    return CommandReply.from_reply(answer, lambda: show_costs(answer))


def _week_of(since: str) -> str:
    """Return the week that is meant, or in which an age began."""
    if not since or _WEEK.fullmatch(since):
        return since
    match = _AGE.fullmatch(since)
    if match is None:
        raise UsageError(f"--since {since} is not a week.", remedy="Write it as 2026-W40, 4w or 30d.")
    day = datetime.now(UTC) - timedelta(days=int(match[1]) * _DAYS[match[2]])
    return f"{day.isocalendar().year}-W{day.isocalendar().week:02}"
