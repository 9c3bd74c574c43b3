"""rich's console with lines that break between words, and the person's pager for long texts."""

import re
import shlex
import sys
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.text import Text

from clients.cli.terminal.output import wrap
from clients.patches import files_of
from septet.contracts.host_files import DiffView
from septet.contracts.replies import PlanReply
from septet.settings import load_settings
from septet.system import processes
from septet.system.masking import printable

_FACT: Final = re.compile(r" {0,2}[a-z]+(?: [a-z]+)?  +(?=\S)")
_LONGEST_NAME: Final = 16


class Terminal(Console):
    """A console that breaks long lines between words, because a terminal would break them inside words."""

    def print(self, *objects: object, soft_wrap: bool | None = None, **how: Any) -> None:  # noqa: ANN401 -- rich's own
        """Print objects, and break long lines between words instead of inside words."""
        if soft_wrap and self.is_terminal:
            objects = tuple(_break_words(each, self.width) for each in objects)
        super().print(*objects, soft_wrap=soft_wrap, **how)


def _break_words(words: object, width: int) -> object:
    if isinstance(words, str):
        return wrap(words, width, _indent_of(words))
    if not isinstance(words, Text):
        return words
    indent, at, lines = _indent_of(words.plain), 0, []
    for number, line in enumerate(wrap(words.plain, width, indent).split("\n")):
        start = words.plain.index(line.lstrip() if number else line, at)
        at = start + len(line.lstrip() if number else line)
        lines.append(Text(" " * (len(line) - (at - start))) + words[start:at])
    return Text("\n", style=words.style).join(lines)


def _indent_of(line: str) -> int:
    """Return the column of the value in a line such as `name  value`; 0 for other lines."""
    name = _FACT.match(line)
    return name.end() if name is not None and name.end() <= _LONGEST_NAME else 0


def console() -> Console:
    """Return a console for stdout, with colours only on a terminal and without `NO_COLOR`."""
    return Terminal(highlight=False, soft_wrap=False)


PATCH_STYLES: Final = {"added": "green", "removed": "red", "place": "cyan", "note": "dim", "same": ""}
_CUT: Final = "… only the beginning is shown."


def page_plan(answer: PlanReply) -> None:
    """Print a plan below its path and SHA-256."""
    lines = [Text(printable(answer.plan.path), style="bold")]
    if answer.plan_sha256:
        lines.append(Text(f"SHA-256 {answer.plan_sha256}", style="dim"))
    lines += [Text(""), Text(printable(answer.plan.text).rstrip())]
    show_paged([*lines, *([] if answer.plan.whole else [Text(_CUT, style="dim")])])


def page_diff(diff: DiffView) -> None:
    """Print a work order's changes: in colours on a terminal, and as git's patch in a pipe."""
    if console().is_terminal and not diff.files:
        console().print("Nothing has changed yet.")
        return
    page_patch(diff.patch, whole=diff.whole)


def page_patch(patch: str, *, whole: bool = True) -> None:
    """Print a patch: in git's format in a pipe; in colours on a terminal, with a note if only a part is given."""
    if not console().is_terminal:
        sys.stdout.write(printable(patch))
        return
    lines: list[Text] = []
    for file in files_of(patch):
        lines.append(Text(printable(file.path), style="bold"))
        lines += [Text(printable(line.text), style=PATCH_STYLES[line.kind]) for line in file.lines]
    show_paged([*lines, *([] if whole else [Text(_CUT, style="dim")])])


def show_paged(parts: Iterable[RenderableType]) -> None:
    """Print texts; on a terminal, through `$PAGER` or `less`."""
    out, environ = console(), load_settings().environ
    pager = shlex.split(environ.get("PAGER") or "less")
    if not out.is_terminal or not pager or pager[0] == "cat":
        _print(out, parts)
        return
    page = Console(highlight=False, force_terminal=True, color_system="standard" if out.color_system else None)
    with page.capture() as shown:
        _print(page, parts)
    try:
        env = {"LESS": "FRX", "LV": "-c", **environ}
        processes.run_on_terminal(pager, env=env, stdin=shown.get().encode())
    except OSError:  # the pager does not exist
        sys.stdout.write(shown.get())


def _print(out: Console, parts: Iterable[RenderableType]) -> None:
    for part in parts:
        Console.print(out, part, soft_wrap=isinstance(part, Text), crop=False)  # keep a file's line whole
