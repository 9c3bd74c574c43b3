"""The options of the commands that serve, and of the commands for administrators."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Final

from clients.cli.options import SERVER, Address, Json, Sandbox, Server, argument, command_options, option

_LAST_PORT: Final = 65535
ApiPort = Annotated[
    int, option(metavar="PORT", help="The port of the page and the HTTP API.", least=1, most=_LAST_PORT)
]


@command_options
class UpOptions:
    """The options of `septet up`."""

    _: KW_ONLY
    port: Annotated[int, option(metavar="PORT", help="The embedded server's port.", least=1, most=_LAST_PORT)] = (
        7233
    )
    ui_port: Annotated[
        int, option(metavar="PORT", help="The port of Temporal's web UI.", least=1, most=_LAST_PORT)
    ] = 8233
    api_port: ApiPort = 8888
    sandbox: Sandbox = None
    as_json: Json = False


@command_options
class WorkerOptions:
    """The options of `septet worker`."""

    _: KW_ONLY
    register: Annotated[
        bool, option("--register", help="Only create the namespace and the search attributes.")
    ] = False
    sandbox: Sandbox = None
    server: Server = SERVER


@command_options
class ServeOptions:
    """The options of `septet serve`."""

    _: KW_ONLY
    port: ApiPort = 8888
    host: Annotated[str, option(metavar="ADDRESS", help="The address to listen on; in a container, 0.0.0.0.")] = (
        "127.0.0.1"
    )
    server: Server = SERVER


@command_options
class McpOptions:
    """The options of `septet mcp`."""

    _: KW_ONLY
    address: Address = None


@command_options
class RunnerOptions:
    """The options of `septet runner`."""

    _: KW_ONLY
    as_json: Json = False


@command_options
class PromoteOptions:
    """The options of `septet promote`."""

    build: Annotated[str | None, argument(metavar="BUILD", help="The build. [default: this installation's]")] = (
        None
    )
    _: KW_ONLY
    ramp: Annotated[
        float | None,
        option(
            metavar="PERCENT", help="Only this percentage of the work orders; 0 ends a ramp.", least=0, most=100
        ),
    ] = None
    within: Annotated[
        float, option(metavar="SECONDS", help="How long to wait for a worker of the build.", least=0)
    ] = 90.0
    force: Annotated[bool, option("--force", help="Promote even if running work orders then have to wait.")] = (
        False
    )
    server: Server = SERVER


@command_options
class HostGoneOptions:
    """The options of `septet host-gone`."""

    host: Annotated[str, argument(metavar="HOST", help="The host's id, as `septet worker` prints it.")]
    _: KW_ONLY
    server: Server = SERVER


@command_options
class BackupOptions:
    """The options of `septet backup`."""

    folder: Annotated[Path, argument(metavar="DIR", help="A new folder.")]
    _: KW_ONLY
    as_json: Json = False


@command_options
class NewKeyOptions:
    """The options of `septet codec new-key`."""

    key_id: Annotated[str, argument(metavar="ID", help="The key's id, such as its month: 2026-11.")]
    _: KW_ONLY
    as_json: Json = False
