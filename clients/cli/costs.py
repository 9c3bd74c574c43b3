"""`septet costs`: what agents have cost so far."""

from datetime import UTC, datetime
from typing import Annotated

from clients.cli.options import option
from clients.cli.render.costs import show_costs
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server
from septet.contracts.names import CostKey
from septet.costs.cost_book import first_week


async def costs(
    *,
    by: Annotated[CostKey, option(help="Group by this.")] = "project",
    since: Annotated[
        str,
        option(metavar="WEEK", help="Count from this week on: 2026-W40, 4w or 30d."),
    ] = "",
    project: Annotated[str, option(metavar="PROJECT", help="Only this project.")] = "",
    server: Server = SERVER,
) -> CommandReply:
    """Show what agents have cost: dollars, tokens and minutes; costs of the last five minutes may be missing."""
    first_week(since, datetime.now(UTC).date())  # before the server is called
    operations = await server.connect()

    answer = await operations.costs.show(by, since, project)
    return CommandReply.from_reply(answer, lambda: show_costs(answer))
