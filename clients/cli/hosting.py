"""Commands for those who run hosts: workers, servers, what they lack, and hosts that are gone."""

from typing import Annotated

import typer

from clients.cli import options as given

app = typer.Typer()


@app.command("host-gone")
def host_gone(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host's id, as `septet worker` says it.")],
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Say that a host is dead: its work orders go on elsewhere now. What its agents did since may be paid twice.

    Example: septet host-gone 3f9a2c71d0be
    """
    from clients.cli import hosts

    hosts.gone(host, address=address, as_json=as_json)


@app.command()
def worker(
    register: Annotated[bool, typer.Option("--register", help="Only create the search attributes.")] = False,
    sandbox: given.Sandbox = None,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Run a worker for a shared Temporal server, until SIGTERM.

    Example: TEMPORAL_ADDRESS=temporal:7233 septet worker
    """
    from clients.cli import worker as implementation

    implementation.worker(register=register, sandbox=sandbox, address=address, as_json=as_json)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="The API's port, on 127.0.0.1.", min=1, max=65535)] = 8888,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Serve the HTTP API, until SIGTERM. `septet up` serves it too.

    Example: septet serve --address temporal:7233
    """
    from clients.cli import serve as implementation

    implementation.serve(port=port, address=address, as_json=as_json)


@app.command()
def runner(as_json: given.Json = False) -> None:
    """Start agents for workers that come and go, until SIGTERM.

    Example: septet runner & SEPTET_RUNNER=true septet worker
    """
    from clients.cli import runner as implementation

    implementation.runner(as_json=as_json)


@app.command()
def mcp(address: given.Address = None) -> None:
    """Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol).

    Example: claude mcp add septet -- septet mcp
    """
    from clients.cli import mcp as implementation

    implementation.mcp(address=address)


@app.command()
def doctor(
    repo: Annotated[str | None, typer.Option(help="Look at this repository's commands and settings too.")] = None,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Say what is missing on this machine, and the remedy.

    Example: septet doctor --repo .
    """
    from clients.cli import doctor as implementation

    implementation.doctor(repo, address=address, as_json=as_json)
