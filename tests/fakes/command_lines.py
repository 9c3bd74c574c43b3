"""The commands of `septet` with their parameters, as the parser knows them; and command lines held against them."""

import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from cyclopts.argument import Argument

from clients.cli.commands import SEPTET, CommandRow, find_command
from clients.cli.parsing.command_line import arguments_of, parse


def leaves(command: CommandRow = SEPTET, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield what is typed for each command that does something."""
    if command.place:
        yield path
    for name, part in command.commands.items():
        yield from leaves(part, (*path, name))


@cache
def parameters(path: tuple[str, ...]) -> tuple[Argument, ...]:
    """Return the arguments and options of a command."""
    return tuple(arguments_of(path))


def options_of(path: tuple[str, ...]) -> list[str]:
    """Return the long names of a command's options."""
    return [max(each.names, key=len) for each in parameters(path) if each.names[0].startswith("-")]


def given_to(words: Sequence[str]) -> Any:
    """Return what the function of a command is given for a command line."""
    return parse(words)[1]


def unknown_parts(line: str) -> set[str]:
    """Return what of a command line is no command, subcommand or option of `septet`; nothing is run."""
    program, *words = shlex.split(line)
    command, path = find_command(words)
    rest = words[len(path) :]
    if program != "septet" or not (command.place if not rest or rest[0].startswith("-") else not command.commands):
        return {line}
    return {word for word in rest if word.startswith("--")} - {*options_of(tuple(path)), "--help"}
