"""The parser of the command line, and the messages for mistakes."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from cyclopts import App
from cyclopts.argument import Argument
from cyclopts.exceptions import CycloptsError, MissingArgumentError, UnknownCommandError, UnknownOptionError

from clients.cli.commands import HELP, SEPTET, CommandRow, find_command, load
from clients.cli.parsing.help import choices_of, is_positional
from septet.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

_ELSEWHERE: Final[Mapping[str, str]] = {
    "--description": "--body",
    "--repository": "--repo",
    "--repository-url": "--repo",
    "--labels": "--label",
    "--steps": "--step",
    "--github-issue-number": "--issue",
}
"""The options of the command line, by the names that the HTTP API and the MCP tools use for the same values."""


class FlagValueError(CycloptsError):
    """A flag was given a value."""


def message_of(error: CycloptsError, command: CommandRow) -> str:
    """Return the message for a mistake on a command line, such as `--priority must be a whole number`."""
    words = error.unused_tokens or []
    if isinstance(error, UnknownOptionError):
        return _no_option(error.token.keyword or error.token.value, error.argument_collection)
    if isinstance(error, UnknownCommandError) and words[0].startswith("-"):
        return _no_option(words[0], ())
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, error.argument)
    if error.argument is not None:
        return _wrong_value(error, error.argument)
    if command.commands and words:
        return _no_command(words, command)
    return f"Got unexpected extra argument(s) ({' '.join(words)})"


def _no_command(words: list[str], command: CommandRow) -> str:
    for word in words:
        if word in command.commands:
            return f"Invalid value: only a new pipeline takes these options; those of `{word}` come after `{word}`"
    near = get_close_matches(words[0], command.commands)
    return f"No such command {words[0]!r}.{f' Did you mean {near[0]!r}?' if near else ''}"


def _no_option(word: str, arguments: Iterable[Argument]) -> str:
    name = word.partition("=")[0]
    known = {option for each in arguments for option in each.names if option.startswith("--")}
    bare = {option.lstrip("-"): option for option in known}
    near = _ELSEWHERE.get(name.replace("_", "-"), "")
    if near not in known:
        close = get_close_matches(name.lstrip("-"), bare) if name.startswith("--") else ()
        near = bare[close[0]] if close else ""
    return f"No such option: {name}. Did you mean {near}?" if near else f"No such option: {name}"


def _missing(error: MissingArgumentError, argument: Argument) -> str:
    name = _name(argument)
    if error.keyword is not None:
        return f"Option {name!r} requires an argument."
    unknown = next((word for word in error.unused_tokens or () if word.startswith("--")), "")
    if unknown and error.app is not None:
        return _no_option(unknown, error.app.assemble_argument_collection())
    return f"Missing {'argument' if is_positional(argument) else 'option'} {name!r}."


def _wrong_value(error: CycloptsError, argument: Argument) -> str:
    name, choices, cause = _name(argument), choices_of(argument), error.__cause__
    if isinstance(error, FlagValueError):
        return f"Option {name!r} does not take a value."
    if choices:
        value = argument.tokens[-1].value if argument.tokens else ""
        return f"{name} {value!r} is not one of {', '.join(map(repr, choices))}."
    return f"{name} {cause or 'is not valid'}."


def _name(argument: Argument) -> str:
    return argument.parameter.metavar or "" if is_positional(argument) else max(argument.names, key=len)


_NO_CONSOLE: Final = cast("Console", object())
"""A dummy console for the parser, which would otherwise import rich's console for each usage error."""


def parse(words: Sequence[str]) -> tuple[CommandRow, Any]:
    """Parse a command line, and return its command and the command's options.

    Raises:
        UsageError: The command does not exist, or an option or argument is wrong.
    """
    command, path = find_command(words)
    try:
        quiet: Any = {"print_error": False, "exit_on_error": False, "error_console": _NO_CONSOLE}
        options, arguments, _ = app_of().parse_args(list(words), **quiet)
        flags = {name: each for each in arguments_of(path) if each.resolved_hint is bool for name in each.names}
        for name, equals, _ in (word.partition("=") for word in words):
            if equals and name in flags:
                raise FlagValueError(argument=flags[name])
    except CycloptsError as error:
        remedy = f"See `{' '.join(('septet', *path))} --help`."
        raise UsageError(message_of(error, command), remedy=remedy) from error
    return command, options(*arguments.args, **arguments.kwargs)


def complete(words: Sequence[str]) -> None:
    """Print the completions of a word for a shell's completion script."""
    function, arguments, _ = app_of().parse_args(list(words))
    function(*arguments.args, **arguments.kwargs)


def arguments_of(path: Sequence[str]) -> list[Argument]:
    """Return the arguments and options of a command; `path` has the words that name the command."""
    app = app_of()
    for word in path:
        app = app[word]
    return [each for each in app.assemble_argument_collection() if each.show]


def app_of(command: CommandRow = SEPTET, name: str = "septet") -> App:
    """Return the parser of a command with subcommands, by default of `septet` itself."""
    app = App(name=name, help_flags=HELP, version_flags=(), help_format="plaintext")
    if command.place:
        app.default(load(command.options))
    for word, part in command.commands.items():
        if part.commands:
            app.command(app_of(part, word))
        else:
            app.command(part.options, name=word, help=part.summary)
    return app
