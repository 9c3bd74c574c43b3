"""`septet costs`: what agents have cost so far."""

from typing import TYPE_CHECKING, Annotated

import typer

from clients.cli import options as given
from clients.cli.grouped_help import Commands
from clients.cli.reply import CommandReply
from septet.contracts.names import CostKey
from septet.costs.weeks import first_week

if TYPE_CHECKING:
    from clients.operations import Operations

app = Commands()


def _check_since(since: str, **_: object) -> None:
    """See whether the week can be read."""
    first_week(since)


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
    """Show what agents have cost: dollars, tokens and minutes; costs of the last five minutes may be missing.

    Example: septet costs --by week --project o/r
    """
    from clients.cli.render.costs import show_costs

    answer = await operations.costs.show(by, since, project)
    return CommandReply.from_reply(answer, lambda: show_costs(answer))
