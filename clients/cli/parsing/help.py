"""The help of a command: its summary, arguments, options and subcommands."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

from clients.cli.commands import EXIT_CODES, GROUPS, CommandRow, load

if TYPE_CHECKING:
    from cyclopts.argument import Argument

_WIDEST: Final = 80
_LABEL: Final = 30
"""The greatest width of a label, in columns; after a wider label, the text begins on the next line."""
_OF_SEPTET: Final = (
    ("--version", "Show the version and exit."),
    ("--install-completion", "Install completion for the current shell."),
    ("--show-completion", "Show completion for the current shell, to copy it or customize the installation."),
)
Rows = Sequence[tuple[str, str]]


def help_of(command: CommandRow, path: Sequence[str]) -> str:
    """Return the help of a command."""
    width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
    whole = " ".join(("septet", *path))
    shown = load("clients.cli.parsing.command_line:arguments_of")(path) if command.place else []
    arguments = [each for each in shown if is_positional(each)]
    options = [(_option_label(each), _text(each)) for each in shown if not is_positional(each)]
    usages = [_name_of(each, "{}" if each.required else "[{}]") for each in arguments]
    parts = "COMMAND [ARGS]..." if command.commands else " ".join(usages)
    lines = [f"Usage: {whole} [OPTIONS] {parts}".rstrip()]
    for paragraph in command.text(whole).split("\n\n"):
        lines += ["", *wrap(paragraph, width, initial_indent="  ", subsequent_indent="  ")]
    sections: dict[str, Rows] = {
        "Arguments": [(_name_of(each), each.parameter.help or "") for each in arguments],
        "Options": [*(() if path else _OF_SEPTET), *options, ("-h, --help", "Show this message and exit.")],
    }
    for heading, group in (GROUPS if not path else {"Commands": command.commands}).items():
        sections[heading] = [(name, each.summary) for name, each in group.items()]
    for heading, rows in sections.items():
        lines += ["", f"{heading}:", *_table(rows, width)] if rows else []
    if not path:
        lines += ["", *wrap(EXIT_CODES, width, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines)


def print_help(command: CommandRow, path: Sequence[str], *, err: bool = False) -> None:
    """Print the help of a command, on stderr if `err` is true."""
    print(help_of(command, path), file=sys.stderr if err else sys.stdout)


def is_positional(argument: "Argument") -> bool:
    """Return whether an argument of the parser is positional; an option is not."""
    return not argument.names[0].startswith("-")


def choices_of(argument: "Argument") -> tuple[str, ...]:
    """Return the only values that an argument allows; an empty tuple if any value is allowed."""
    return get_args(argument.resolved_hint) if get_origin(argument.resolved_hint) is Literal else ()


def _name_of(argument: "Argument", form: str = "{}") -> str:
    return form.format(argument.parameter.metavar) + ("..." if get_origin(argument.resolved_hint) is list else "")


def _option_label(argument: "Argument") -> str:
    names, choices = ", ".join(sorted(argument.names, key=len)), choices_of(argument)
    value = f"<{'|'.join(choices)}>" if choices else argument.parameter.metavar or ""
    return names if argument.resolved_hint is bool else f"{names} {value}"


def _text(argument: "Argument") -> str:
    default, text = argument.field_info.default, argument.parameter.help or ""
    if argument.required:
        return f"{text}  [required]"
    if default in (None, "", False) or default is argument.field_info.empty:
        return text
    return f"{text}  [default: {default}]"


def _table(rows: Rows, width: int) -> Iterator[str]:
    first = min(max(len(label) for label, _ in rows), _LABEL) + 2
    for label, text in rows:
        lines = wrap(text, max(width - first - 2, 10)) or [""]
        if len(label) > first - 2:
            yield f"  {label}"
        else:
            yield f"  {label:<{first}}{lines.pop(0)}".rstrip()
        yield from (f"  {'':<{first}}{line}" for line in lines)
