"""The `septet` command: what there is to say on a command line. What it does stands in the modules beside it."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from clients.cli import asking, deciding
from clients.cli.options import Address, Id, Json, Repo
from clients.cli.reply import ExitCode, end_with_error
from septet.contracts.names import SandboxChoice

_HELP: Final = "Turn an issue into a pull request with a coding-agent CLI, as a durable Temporal workflow."
_EXIT_CODES: Final = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 server not reached, 5 refused, 6 already running, "
    "130 interrupted."
)

app = typer.Typer(
    name="septet",
    help=_HELP,
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Number = Annotated[int, typer.Argument(metavar="N", help="The pull request's number.", min=1)]

rescue = typer.Typer(name="rescue", help="Get work back.", no_args_is_help=True, rich_markup_mode=None)
issue = typer.Typer(name="issue", help="Issues of the local forge.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(asking.app)
app.add_typer(deciding.app)
app.add_typer(rescue)
app.add_typer(issue)
pull = typer.Typer(
    name="pr", help="Pull requests of the local forge.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(pull)

SandboxOption = Annotated[
    SandboxChoice | None, typer.Option("--sandbox", help="What confines agents; SEPTET_SANDBOX, else auto.")
]
Port = Annotated[int, typer.Option(help="The embedded server's port.")]
UiPort = Annotated[int, typer.Option(help="The web UI's port.")]
ApiPort = Annotated[int, typer.Option(help="The HTTP API's port.")]


@app.command()
def up(
    port: Port = 7233,
    ui_port: UiPort = 8233,
    api_port: ApiPort = 8888,
    sandbox: SandboxOption = None,
    as_json: Json = False,
) -> None:
    """Run server, web UI, worker and HTTP API in this terminal, until Ctrl-C.

    Example: septet up
    """
    from clients.cli import up as implementation

    implementation.up(port=port, ui_port=ui_port, api_port=api_port, sandbox=sandbox, as_json=as_json)


@app.command()
def demo(
    scenario: Annotated[
        str | None, typer.Option(help="What the scripted agent does wrong: malformed, crash, …")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent; a real one costs money.")] = "scripted",
    sandbox: SandboxOption = None,
    as_json: Json = False,
) -> None:
    """Take an issue of a sample repository to its pull request.

    Example: septet demo --scenario crash
    """
    from clients.cli import demo as implementation

    implementation.demo(scenario=scenario, agent=agent, sandbox=sandbox, as_json=as_json)


@app.command()
def show(order_id: Id, address: Address = None, as_json: Json = False) -> None:
    """Show one work order.

    Example: septet show wo-42
    """
    from clients.cli import orders

    orders.show(order_id, address=address, as_json=as_json)


@app.command()
def steps(order_id: Id, address: Address = None, as_json: Json = False) -> None:
    """Show the steps of one work order.

    Example: septet steps wo-42 --json
    """
    from clients.cli import orders

    orders.steps(order_id, address=address, as_json=as_json)


@app.command()
def board(
    project: Annotated[str | None, typer.Option(help="Only this project.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show it again when it changes.")] = False,
    after: Annotated[str, typer.Option(metavar="NEXT", help="The `next` of the page before.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most work orders of a page.")] = 500,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Show the work orders by stage.

    Example: septet board --project o/r --follow
    """
    from clients.cli import orders, watch

    if follow:
        watch.follow_board(project, address=address, as_json=as_json)
    else:
        orders.board(project, after=after, limit=limit, address=address, as_json=as_json)


@app.command("watch")
def watch_(order_id: Id, address: Address = None, as_json: Json = False) -> None:
    """Watch a work order live, until it ends: steps, tool calls, tokens, plan and changes.

    Example: septet watch wo-42
    """
    from clients.cli import watch

    watch.watch(order_id, address=address, as_json=as_json)


@app.command()
def logs(
    order_id: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the work order ends.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes that the agent printed.")] = False,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Show what the agents of a work order said and did.

    Example: septet logs wo-42 --follow
    """
    from clients.cli import logs as implementation

    implementation.logs(order_id, follow=follow, raw=raw, address=address, as_json=as_json)


@app.command("host-gone")
def host_gone(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host's id, as `septet worker` says it.")],
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Say that a host is dead: its work orders go on elsewhere now. What its agents did since may be paid twice.

    Example: septet host-gone 3f9a2c71d0be
    """
    from clients.cli import hosts

    hosts.gone(host, address=address, as_json=as_json)


@app.command()
def worker(
    register: Annotated[bool, typer.Option("--register", help="Only create the search attributes.")] = False,
    sandbox: SandboxOption = None,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Run a worker for a shared Temporal server, until SIGTERM.

    Example: TEMPORAL_ADDRESS=temporal:7233 septet worker
    """
    from clients.cli import worker as implementation

    implementation.worker(register=register, sandbox=sandbox, address=address, as_json=as_json)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="The API's port, on 127.0.0.1.")] = 8888,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Serve the HTTP API, until SIGTERM. `septet up` serves it too.

    Example: septet serve --address temporal:7233
    """
    from clients.cli import serve as implementation

    implementation.serve(port=port, address=address, as_json=as_json)


@app.command()
def runner(as_json: Json = False) -> None:
    """Start agents for workers that come and go, until SIGTERM.

    Example: septet runner & SEPTET_RUNNER=true septet worker
    """
    from clients.cli import runner as implementation

    implementation.runner(as_json=as_json)


@app.command()
def mcp(address: Address = None) -> None:
    """Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol).

    Example: claude mcp add septet -- septet mcp
    """
    from clients.cli import mcp as implementation

    implementation.mcp(address=address)


@app.command()
def doctor(
    repo: Annotated[str | None, typer.Option(help="Look at this repository's commands and settings too.")] = None,
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Say what is missing on this machine, and the remedy.

    Example: septet doctor --repo .
    """
    from clients.cli import doctor as implementation

    implementation.doctor(repo, address=address, as_json=as_json)


@rescue.command("list")
def rescue_list(
    order_id: Annotated[str | None, typer.Argument(metavar="ID", help="Only this work order's.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The checkpoints too.")] = False,
    as_json: Json = False,
) -> None:
    """List the rescues on this host.

    Example: septet rescue list wo-42
    """
    from clients.cli import rescues

    rescues.list_(order_id, everything=everything, as_json=as_json)


@rescue.command("restore")
def rescue_restore(
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="Its name, as `rescue list` shows it.")],
    to: Annotated[Path, typer.Option(help="A new or empty folder.")],
    as_json: Json = False,
) -> None:
    """Restore a snapshot, bit for bit, into a folder of its own.

    Example: septet rescue restore wo-42/0007-rescue --to /tmp/back
    """
    from clients.cli import rescues

    rescues.restore(snapshot, to, as_json=as_json)


@issue.command("add")
def issue_add(
    repo: Repo,
    title: Annotated[str, typer.Option(help="The issue's title.")],
    body: Annotated[str, typer.Option(help="The issue's body.")] = "",
    as_json: Json = False,
) -> None:
    """Add an issue to the local forge of a repository on disk.

    Example: septet issue add --repo ./app --title 'Totals are wrong'
    """
    from clients.cli import issues

    issues.add(repo, title, body, as_json=as_json)


@pull.command("merge")
def pull_merge(repo: Repo, number: Number, as_json: Json = False) -> None:
    """Merge a pull request of a repository on disk into its base.

    Example: septet pr merge --repo ./app.git 1
    """
    from clients.cli import pulls

    pulls.end(repo, number, "merge", as_json=as_json)


@pull.command("close")
def pull_close(repo: Repo, number: Number, as_json: Json = False) -> None:
    """Close a pull request of a repository on disk without a merge; its branch stays.

    Example: septet pr close --repo ./app.git 1
    """
    from clients.cli import pulls

    pulls.end(repo, number, "close", as_json=as_json)


def main() -> None:
    """Run the command line: no traceback reaches a user who made a mistake."""
    if sys.platform == "win32":
        sys.exit("Septet does not run on Windows: use Linux, or a Linux distribution under WSL.")
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        code = _usage(error, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    _end(int(code or ExitCode.OK))


def _end(code: int) -> NoReturn:
    """End this process without Python's finalization: a thread of the SDK that wakes up in it aborts the process.

    All work is over by now; https://github.com/temporalio/sdk-python/issues/300 is the abort.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    remedy = f"See `{context.command_path if context else 'septet'} --help`."
    try:
        end_with_error("Usage", error.format_message(), remedy, ExitCode.USAGE, as_json=as_json)
    except typer.Exit as ended:
        return ended.exit_code
    return ExitCode.USAGE
