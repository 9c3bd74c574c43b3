"""The `septet` command: no traceback reaches a user who made a mistake."""

import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts.exceptions import CycloptsError

from clients.cli.command_line import app_at, app_of, parse
from clients.cli.commands import HELP, find_command, load
from clients.cli.help import print_help
from clients.cli.reply import ExitCode, end_with_error, reply
from clients.cli.wrapping import echo
from septet.errors import UsageError
from septet.system.keys import take_keys_out_of_sight
from septet.system.own_process import end_process, share_heaps


def main() -> None:
    """Run the command line, and end this process."""
    if sys.platform == "win32":
        sys.exit("Septet does not run on Windows: use Linux, or a Linux distribution under WSL.")
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    code: int = ExitCode.OK
    try:
        run(sys.argv[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else ExitCode.FAILED
    end_process(code)


def run(words: Sequence[str]) -> None:
    """Carry out a command line.

    Raises:
        SystemExit: Always, but after a help or a version.
    """
    as_json = "--json" in words
    try:
        if not _is_answered_here(words):
            _run_command(words)
    except KeyboardInterrupt:
        end_with_error("Interrupted", "Interrupted.", "", ExitCode.INTERRUPTED, as_json=as_json)
    except UsageError as error:
        end_with_error("Usage", error.message, error.remedy, ExitCode.USAGE, as_json=as_json)
    except BrokenPipeError:
        raise SystemExit(ExitCode.FAILED) from None
    except CycloptsError as error:
        command, path = find_command(words)
        remedy = f"See `{' '.join(('septet', *path))} --help`."
        end_with_error(
            "Usage",
            load("clients.cli.usage_errors:message_of")(error, command),
            remedy,
            ExitCode.USAGE,
            as_json=as_json,
        )


def _is_answered_here(words: Sequence[str]) -> bool:
    """Answer what asks for no command: a help, the version, what a shell completes; return whether it was that."""
    command, path = find_command(words)
    rest = words[len(path) :]
    is_unknown = bool(rest) and not command.place and not rest[0].startswith("-")
    if not rest and command.commands:
        print_help(command, path, app_at(path), err=True)
        sys.exit(ExitCode.USAGE)
    if words[:1] == ["--version"]:
        echo(f"septet {version('septet')}")
    elif words[0] in {"--install-completion", "--show-completion", "__complete"}:
        _complete(words)
    elif not is_unknown and {*HELP} & {*rest[: rest.index("--") if "--" in rest else None]}:
        print_help(command, path, app_at(path))
    else:
        return False
    sys.stdout.flush()
    return True


def _complete(words: Sequence[str]) -> None:
    """Give a shell what it completes with."""
    if words[0] == "--install-completion":
        place = app_of().install_completion(**load("clients.cli.completion:shell_option")())
        echo(f"Completion is installed in {place}.")
    elif words[0] == "--show-completion":
        echo(app_of().generate_completion(**load("clients.cli.completion:shell_option")()))
    else:
        function, arguments, _ = app_of().parse_args(list(words))
        function(*arguments.args, **arguments.kwargs)


def _run_command(words: Sequence[str]) -> None:
    command, _ = find_command(words)
    if command.has_keys:
        take_keys_out_of_sight()
        share_heaps()
    function, arguments = parse(words)
    given = arguments.arguments
    server = given.get("server")
    as_json = (server.as_json if server is not None else given.get("as_json", False)) and not given.get("raw")
    reply(lambda: function(*arguments.args, **arguments.kwargs), as_json=bool(as_json), is_service=command.serves)
