"""`septet doctor`: this machine's checks, or a trial of one agent."""

from typing import Annotated

from clients.cli.agent_trial import try_agent
from clients.cli.doctor import check_machine
from clients.cli.options import option
from clients.cli.reply import CommandReply
from clients.cli.server import SERVER, Server


async def doctor(
    *,
    repo: Annotated[
        str | None, option(metavar="REPO", help="Look at this repository's commands and settings too.")
    ] = None,
    agent: Annotated[
        str | None, option("--try", metavar="AGENT", help="Only try this agent, with one short turn.")
    ] = None,
    server: Server = SERVER,
) -> CommandReply:
    """Check this machine: what is missing, and how to fix it."""
    return await (check_machine(repo, server.address) if agent is None else try_agent(agent))
