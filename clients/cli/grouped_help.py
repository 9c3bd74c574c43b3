"""`septet --help`: the commands by what people want to do, the most used first, each with a whole sentence."""

from collections.abc import Mapping
from typing import Final

import typer.core
from typer._click import Context, HelpFormatter  # typer brings its own click

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Start": ("run", "create", "pipeline", "intake", "demo", "issue"),
    "Watch": ("watch", "show", "list", "board", "logs", "plan", "diff", "steps", "open"),
    "Decide": ("approve", "reject", "cancel", "move", "pr"),
    "Recover": ("retry", "refresh", "rescue", "doctor", "host-gone"),
    "Serve": ("up", "worker", "serve", "mcp", "runner", "promote"),
}
_OTHERS: Final = "Other commands"


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


def _sentence(text: str) -> str:
    """Return the first line of a command's help, whole."""
    return text.strip().partition("\n")[0]
