"""Replace a command's placeholders in one pass over the template; values are never scanned again.

`$ARGUMENTS` is all arguments joined by ", "; `$1`, `$2`, … is one argument, `$10` the tenth; `${NAME}` is a named
value; `${1}` and `${ARGUMENTS}` are the same as without braces; `$$` is a dollar. Every other dollar stays:
`$HOME`, `$0`, `$ARGUMENTS_FILE`, `${lower}`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from septet.commands.loader import Command
from septet.commands.values import FIRST_STEP, arguments_of, available
from septet.errors import CommandError

_PLACEHOLDER: Final = re.compile(
    r"""
    \$ (?:
        (?P<dollar> \$ )
      | (?P<bare> ARGUMENTS (?! [A-Za-z0-9_] ) | [1-9][0-9]* )
      | \{ (?P<braced> [A-Z][A-Z0-9_]* | [1-9][0-9]* ) \}
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder in a command's text."""

    text: str
    """The placeholder as written, such as `$2` or `${ISSUE_TITLE}`."""
    name: str
    """The value's name: `2`, `ISSUE_TITLE`, `ARGUMENTS`."""
    line: int
    """The line number, from 1."""


def placeholders(command: Command) -> Iterator[Placeholder]:
    """Yield the command's placeholders from top to bottom; `$$` is not a placeholder."""
    line, counted_to = 1, 0
    for match in _PLACEHOLDER.finditer(command.text):
        line += command.text.count("\n", counted_to, match.start())
        counted_to = match.start()
        if name := match["bare"] or match["braced"]:
            yield Placeholder(match[0], name, line)


def check(command: Command) -> None:
    """Check, before any agent starts, that `command`'s step has a value for each placeholder.

    Raises:
        CommandError: A value is missing; the message names the file, and each line and placeholder.
    """
    _refuse_unknown(command, available(command.step, command.name))


def fill(command: Command, arguments: Sequence[str], by_name: Mapping[str, str]) -> str:
    """Return `command`'s text with every placeholder replaced. The empty string is a value like any other.

    Args:
        command: The command.
        arguments: `$1`, `$2`, … and, joined by ", ", `$ARGUMENTS`.
        by_name: `${NAME}` by name.

    Raises:
        CommandError: A placeholder has no value; the message names the file, and each line and placeholder.
    """
    values = dict(by_name)
    values |= {str(number): argument for number, argument in enumerate(arguments, start=1)}
    if arguments:
        values["ARGUMENTS"] = ", ".join(arguments)
    _refuse_unknown(command, values.keys())

    def value(match: re.Match[str]) -> str:
        name = match["bare"] or match["braced"]
        return values[name] if name else "$"

    return _PLACEHOLDER.sub(value, command.text)


def _refuse_unknown(command: Command, names: AbstractSet[str]) -> None:
    unknown = [placeholder for placeholder in placeholders(command) if placeholder.name not in names]
    if not unknown:
        return
    where = "; ".join(f"line {placeholder.line}: {placeholder.text}" for placeholder in unknown)
    message = f"{command.place} uses placeholders that {command.step} has no value for: {where}."
    raise CommandError(message, remedy=_remedy(command, unknown[0]))


def _remedy(command: Command, placeholder: Placeholder) -> str:
    if placeholder.name in FIRST_STEP:
        since = f"${{{placeholder.name}}} is available from {FIRST_STEP[placeholder.name]} on."
    else:
        count = len(arguments_of(command.step, command.name))
        since = f"{command.step} has $1 to ${count}, $ARGUMENTS and named values."
    return f"{since} Correct the file, or write $${placeholder.text[1:]} where the text itself is meant."
