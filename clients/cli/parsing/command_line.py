"""The parser of the command line, made from the table of commands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from cyclopts import App
from cyclopts.argument import Argument
from cyclopts.exceptions import CycloptsError

from clients.cli.commands import HELP, SEPTET, CommandRow, find_command, load
from clients.cli.parsing.usage_errors import FlagValueError, message_of
from septet.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


_NO_CONSOLE: Final = cast("Console", object())
"""A console that prints nothing. Without this console, the parser imports rich's console for each usage error."""


def parse(words: Sequence[str]) -> tuple[CommandRow, Any]:
    """Return the command of a command line, and its options.

    Raises:
        UsageError: The command does not exist, or an option or argument is wrong.
    """
    command, path = find_command(words)
    try:
        options, arguments, _ = app_of().parse_args(
            list(words), print_error=False, exit_on_error=False, error_console=_NO_CONSOLE
        )
        _expect_no_value_of_flags(words, arguments_of(path))
    except CycloptsError as error:
        remedy = f"See `{' '.join(('septet', *path))} --help`."
        raise UsageError(message_of(error, command), remedy=remedy) from error
    return command, options(*arguments.args, **arguments.kwargs)


def complete(words: Sequence[str]) -> None:
    """Print the completions of a word, for the script of a shell."""
    function, arguments, _ = app_of().parse_args(list(words))
    function(*arguments.args, **arguments.kwargs)


def _expect_no_value_of_flags(words: Sequence[str], arguments: Sequence[Argument]) -> None:
    flags = {name: each for each in arguments if each.resolved_hint is bool for name in each.names}
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name in flags:
            raise FlagValueError(argument=flags[name])


def arguments_of(path: Sequence[str]) -> list[Argument]:
    """Return the arguments and options of a command."""
    app = app_of()
    for word in path:
        app = app[word]
    return [each for each in app.assemble_argument_collection() if each.show]


def app_of(command: CommandRow = SEPTET, name: str = "septet") -> App:
    """Return the parser of `septet`, or of a group of subcommands."""
    app = App(name=name, help_flags=HELP, version_flags=(), help_format="plaintext")
    if command.place:
        app.default(load(command.options))
    for word, part in command.commands.items():
        if part.commands:
            app.command(app_of(part, word))
        else:
            app.command(part.options, name=word, help=part.summary)
    return app
