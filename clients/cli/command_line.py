"""The command line as its parser knows it, made from the table of commands."""

from collections.abc import Callable, Sequence
from inspect import BoundArguments
from typing import Any

from cyclopts import App
from cyclopts.exceptions import CycloptsError

from clients.cli.commands import HELP, SEPTET, CommandRow, find_command, load
from septet.system.own_process import quick_imports


class FlagValueError(CycloptsError):
    """A flag was given a value."""


def parse(words: Sequence[str]) -> tuple[Callable[..., Any], BoundArguments]:
    """Return what a command line asks for: the function of a command, and its arguments.

    Raises:
        CycloptsError: There is no such command line.
    """
    path = find_command(words)[1]
    with quick_imports():
        app = app_of(path[:1])
        function, arguments, _ = app.parse_args(list(words), print_error=False, exit_on_error=False)
    _expect_no_value_of_flags(words, app_at(path))
    return function, arguments


def _expect_no_value_of_flags(words: Sequence[str], app: App) -> None:
    flags = {name: each for each in app.assemble_argument_collection() for name in each.names}
    for word in words:
        argument = flags.get(word.partition("=")[0])
        if "=" in word and argument is not None and argument.resolved_hint is bool:
            raise FlagValueError(argument=argument)


def app_at(path: Sequence[str]) -> App:
    """Return the parser of a command, with its module imported."""
    app = app_of(path[:1])
    for word in path:
        app = app[word]
    return app


def app_of(names: Sequence[str] = tuple(SEPTET.commands)) -> App:
    """Return the parser of `septet`; `names` are the commands whose own function it has beside subcommands."""
    return _app("septet", SEPTET, names)


def _app(name: str, command: CommandRow, names: Sequence[str]) -> App:
    app = App(name=name, help_flags=HELP, version_flags=(), help_format="plaintext")
    if command.place and name in names:
        app.default(load(command.place))
    for word, part in command.commands.items():
        if part.commands:
            app.command(_app(word, part, names))
        else:
            app.command(part.place, name=word, help=part.summary)
    return app
