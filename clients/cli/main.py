"""The `septet` command: its commands in the order of its help. What they do stands in modules beside it."""

import sys
from typing import Annotated, Final

import typer

from clients.cli import (
    backup,
    budgets,
    codec,
    costs,
    decide,
    docs,
    follow,
    hosts,
    init,
    intake,
    local_forge,
    pipelines,
    promote,
    rescues,
    show,
    start,
)
from clients.cli import options as given
from clients.cli.grouped_help import Commands, GroupedCommands
from clients.cli.reply import ExitCode, end_with_error, error_object, print_json, reply
from septet.system.exit import end_process
from septet.system.heaps import share_heaps
from septet.system.imports import quick_imports
from septet.system.keys import take_keys_out_of_sight

_HELP: Final = "Turn an issue into a pull request with a coding-agent CLI, as a durable Temporal workflow."
_EXIT_CODES: Final = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 server not reached, 5 refused, 6 already running, "
    "130 interrupted."
)

app = Commands(
    name="septet",
    cls=GroupedCommands,
    help=_HELP,
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
SCENARIOS: Final = (
    "crash, false_claim, malformed, malformed_always, malformed_twice, refuse or slow; or your own file"
)
Port = Annotated[int, typer.Option(metavar="PORT", help="The embedded server's port.", min=1, max=65535)]
UiPort = Annotated[int, typer.Option(metavar="PORT", help="The port of Temporal's web UI.", min=1, max=65535)]
ApiPort = Annotated[
    int, typer.Option(metavar="PORT", help="The port of the page and the HTTP API.", min=1, max=65535)
]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"septet {version('septet')}")
        raise typer.Exit


@app.callback()
def septet(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


@app.command()
def up(
    port: Port = 7233,
    ui_port: UiPort = 8233,
    api_port: ApiPort = 8888,
    sandbox: given.Sandbox = None,
    as_json: given.Json = False,
) -> None:
    """Run server, worker, page and HTTP API in this terminal, until Ctrl-C.

    Example: septet up
    """
    take_keys_out_of_sight()
    share_heaps()
    with quick_imports():
        from clients.cli.up import serve_everything
        from workers.server.server import Ports

    reply(lambda: serve_everything(Ports(port, ui_port, api_port), sandbox, as_json=as_json), as_json=as_json)


def _complete_scenario(incomplete: str) -> list[str]:
    from septet.agents.scripted.scenario import built_in_scenarios

    return [name for name in built_in_scenarios() if name.startswith(incomplete)]


@app.command()
def demo(
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help=f"What the scripted agent does wrong: {SCENARIOS}.",
            autocompletion=_complete_scenario,
        ),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="AGENT",
            help=f"One of {given.AGENT_CHOICE}; a real one costs money.",
            autocompletion=given.complete_agent,
        ),
    ] = "scripted",
    sandbox: given.Sandbox = None,
    as_json: given.Json = False,
) -> None:
    """Try Septet: turn an issue of a sample repository into a pull request.

    Example: septet demo --scenario crash
    """
    take_keys_out_of_sight()
    with quick_imports():
        from clients.cli.demo import run_demo

    reply(lambda: run_demo(scenario, agent, sandbox, as_json=as_json), as_json=as_json)


for _commands in (
    show.app, docs.app, follow.app, hosts.app, init.app, backup.app, promote.app, start.app, decide.app,
    pipelines.app, budgets.app, costs.app, rescues.app, codec.app, intake.app, local_forge.issues,
    local_forge.pulls,
):  # fmt: skip
    app.add_typer(_commands)


def main() -> None:
    """Run the command line: no traceback reaches a user who made a mistake."""
    if sys.platform == "win32":
        sys.exit("Septet does not run on Windows: use Linux, or a Linux distribution under WSL.")
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        code = _usage(error, as_json=as_json)
    except SystemExit as end:  # typer ends with it when the reader of a pipe has gone
        code = end.code if isinstance(end.code, int) else ExitCode.FAILED
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
        if as_json:
            print_json(error_object("Interrupted", "Interrupted.", ""))
    end_process(int(code or ExitCode.OK))


def _typed_command() -> str:
    """Return the command that was typed, as far as there is such a command: the error of an option names none."""
    commands, path = getattr(typer.main.get_command(app), "commands", {}), "septet"
    for word in sys.argv[1:]:
        if word not in commands:
            break
        path, commands = f"{path} {word}", getattr(commands[word], "commands", {})
    return path


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    from clients.cli.wrong_option import message_of

    context = getattr(error, "ctx", None)
    remedy = f"See `{context.command_path if context else _typed_command()} --help`."
    message = message_of(error)
    if context is not None and message == context.get_help():  # nothing was asked for
        typer.echo(message, err=True)
        return ExitCode.USAGE
    try:
        end_with_error("Usage", message, remedy, ExitCode.USAGE, as_json=as_json)
    except typer.Exit as end:
        return end.exit_code
