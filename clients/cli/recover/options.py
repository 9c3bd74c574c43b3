"""The options of the commands that recover work."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated

from clients.cli.options import SERVER, Json, Server, argument, command_options, completed_by, option


@command_options
class RescuesOptions:
    """The options of `septet rescue list`."""

    order_id: Annotated[str | None, argument(metavar="ID", help="Only this work order's.")] = None
    _: KW_ONLY
    everything: Annotated[bool, option("--all", help="Include checkpoints.")] = False
    as_json: Json = False


@command_options
class RestoreOptions:
    """The options of `septet rescue restore`."""

    snapshot: Annotated[
        str,
        argument(
            metavar="SNAPSHOT", help="Its name, as `rescue list` shows it.", completer=completed_by("snapshots")
        ),
    ]
    _: KW_ONLY
    to: Annotated[Path, option(metavar="DIR", help="A new or empty folder.")]
    as_json: Json = False


@command_options
class DocsOptions:
    """The options of `septet docs`."""

    page: Annotated[
        str | None,
        argument(metavar="PAGE", help="A page, such as commands.", completer=completed_by("pages")),
    ] = None
    _: KW_ONLY
    as_json: Json = False


@command_options
class HostGoneOptions:
    """The options of `septet host-gone`."""

    host: Annotated[str, argument(metavar="HOST", help="The host's id, as `septet worker` prints it.")]
    _: KW_ONLY
    server: Server = SERVER
