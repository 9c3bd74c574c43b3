"""The options of `septet doctor`."""

from dataclasses import KW_ONLY
from typing import Annotated

from clients.cli.options import SERVER, Server, command_options, option


@command_options
class DoctorOptions:
    """The options of `septet doctor`."""

    _: KW_ONLY
    repo: Annotated[
        str | None, option(metavar="REPO", help="Look at this repository's commands and settings too.")
    ] = None
    agent: Annotated[
        str | None, option("--try", metavar="AGENT", help="Only try this agent, with one short turn.")
    ] = None
    server: Server = SERVER
