"""`septet --help`: the commands by what people want to do, the most used first, each with a whole sentence."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import typer.core
from typer._click import Context, HelpFormatter  # typer brings its own click

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Start": ("run", "create", "pipeline", "intake", "demo", "issue", "init"),
    "Watch": ("watch", "show", "list", "board", "logs", "plan", "diff", "steps", "costs", "open"),
    "Decide": ("approve", "reject", "cancel", "move", "budget", "pr"),
    "Recover": ("retry", "refresh", "rescue", "doctor", "docs", "host-gone"),
    "Serve": ("up", "worker", "serve", "mcp", "runner", "promote", "backup", "codec"),
}
Command = TypeVar("Command", bound=Callable[..., Any])
_OTHERS: Final = "Other commands"
_BRACES: Final = re.compile(r"^\{(.*)\}$")
_TYPE: Final = re.compile(r" <(?P<list>list\[)?[a-z ]+\]?>$")
_RANGE: Final = re.compile(r"(; )?(-?[0-9]+<=x(<=[0-9]+)?|x[<>]=[0-9]+)")
_NOTHING: Final = re.compile(r"  \[(required)?\]$")


class PlainCommand(typer.core.TyperCommand):
    """A command whose help shows what goes where, and defaults as defaults: neither types nor ranges."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return what follows the command's name: `ID`, or `[ID]` where it may be left out."""
        return [_BRACES.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write arguments and options, a line or two each."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                rows["Arguments" if is_argument else "Options"].append(_plain(*record, is_argument=is_argument))
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandGroup(typer.core.TyperGroup):
    """The commands of one word, such as `septet pipeline`, each with a whole sentence."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write them as they were added."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, _sentence(each.help or "")) for name, each in self.commands.items()])


class Commands(typer.Typer):
    """Commands of one module."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Command]:  # noqa: ANN401 -- typer's
        """Add a command, with plain help."""
        return super().command(name, cls=PlainCommand, **settings)


def command_group(name: str, summary: str) -> Commands:
    """Return the commands of one word, to be added; `summary` is its line in `septet --help`."""
    return Commands(name=name, cls=CommandGroup, help=summary, no_args_is_help=True, rich_markup_mode=None)


class GroupedCommands(typer.core.TyperGroup):
    """The commands of `septet` under headings; one that is new and stands in no group is listed last."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write a section for each group."""
        del ctx
        rest = [name for name in self.commands if not any(name in names for names in GROUPS.values())]
        for heading, names in {**GROUPS, _OTHERS: tuple(rest)}.items():
            rows = [(name, _sentence(self.commands[name].help or "")) for name in names if name in self.commands]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _plain(name: str, text: str, *, is_argument: bool) -> tuple[str, str]:
    """Return a row of help without types and ranges; an argument that may be left out has brackets already."""
    text = _RANGE.sub("", text).replace("[; ", "[")
    if not is_argument:
        return name, text.replace("  []", "")
    return _TYPE.sub(lambda match: "..." if match["list"] else "", name), _NOTHING.sub("", text)


def _sentence(text: str) -> str:
    """Return the first line of a command's help, whole."""
    return text.strip().partition("\n")[0]
