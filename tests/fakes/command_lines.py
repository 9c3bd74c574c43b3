"""The commands of `septet` with their parameters as the parser knows them, and checks of command lines."""

import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from cyclopts.argument import Argument

from clients.cli.commands import SEPTET, CommandRow, find_command
from clients.cli.parsing.command_line import arguments_of, parse


def leaves(command: CommandRow = SEPTET, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if command.place:
        yield path
    for name, part in command.commands.items():
        yield from leaves(part, (*path, name))


@cache
def parameters(path: tuple[str, ...]) -> tuple[Argument, ...]:
    return tuple(arguments_of(path))


def options_of(path: tuple[str, ...]) -> list[str]:
    return [max(each.names, key=len) for each in parameters(path) if each.names[0].startswith("-")]


def given_to(words: Sequence[str]) -> Any:
    return parse(words)[1]


def unknown_parts(line: str) -> set[str]:
    """Return the parts of a command line that are no command, subcommand or option of `septet`, without running it."""
    program, *words = shlex.split(line)
    command, path = find_command(words)
    rest = words[len(path) :]
    if program != "septet" or not (command.place if not rest or rest[0].startswith("-") else not command.commands):
        return {line}
    return {word for word in rest if word.startswith("--")} - {*options_of(tuple(path)), "--help"}
