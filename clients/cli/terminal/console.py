"""The console of rich: lines that people copy break only between words."""

import re
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from clients.cli.terminal.output import wrap

_FACT: Final = re.compile(r" {0,2}[a-z]+(?: [a-z]+)?  +(?=\S)")
_LONGEST_NAME: Final = 16


class Terminal(Console):
    """A console that breaks lines between words if rich does not: a terminal would break inside words."""

    def print(self, *objects: object, soft_wrap: bool | None = None, **how: Any) -> None:  # noqa: ANN401 -- rich's own
        """Print objects. Break unwrapped lines between words, and indent the rest of a line below its fact."""
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
    """Return the column at which a fact begins after its name; 0 for a line without a name."""
    name = _FACT.match(line)
    return name.end() if name is not None and name.end() <= _LONGEST_NAME else 0


def console() -> Console:
    """Return rich's console for stdout: colours only on a terminal, none with NO_COLOR."""
    return Terminal(highlight=False, soft_wrap=False)
