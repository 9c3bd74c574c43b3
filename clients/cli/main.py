"""The `septet` command, which prints no traceback for a user's mistake."""

import sys
from collections.abc import Sequence
from importlib.metadata import version

from clients.cli.commands import HELP, find_command, load
from clients.cli.parsing.help import print_help
from clients.cli.terminal.output import ExitCode, echo, end_with_error
from septet.errors import UsageError
from septet.system.keys import take_keys_out_of_sight
from septet.system.own_process import end_process, quick_imports, share_heaps


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
    """Run a command line.

    Raises:
        SystemExit: Always, except after a request for help, the version or a completion.
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


def _is_answered_here(words: Sequence[str]) -> bool:
    """Handle a request for help, the version or completion; return whether the command line was such a request."""
    command, path = find_command(words)
    rest = words[len(path) :]
    is_unknown = bool(rest) and not command.place and not rest[0].startswith("-")
    if not rest and command.commands:
        print_help(command, path, err=True)
        sys.exit(ExitCode.USAGE)
    if words[:1] == ["--version"]:
        echo(f"septet {version('septet')}")
    elif words[0] in {"--install-completion", "--show-completion"}:
        load("clients.cli.parsing.shell:give_script")(words)
    elif words[0] == "__complete":
        load("clients.cli.parsing.command_line:complete")(words)
    elif not is_unknown and {*HELP} & {*rest[: rest.index("--") if "--" in rest else None]}:
        print_help(command, path)
    else:
        return False
    sys.stdout.flush()
    return True


def _run_command(words: Sequence[str]) -> None:
    with quick_imports():
        command, options = load("clients.cli.parsing.command_line:parse")(words)
        if command.has_keys:
            take_keys_out_of_sight()
            share_heaps()
        function, reply = load(command.place), load("clients.cli.terminal.reply:reply")
    as_json = getattr(getattr(options, "server", options), "as_json", False) and not getattr(options, "raw", False)
    reply(lambda: function(options), as_json=as_json, is_service=command.serves)
