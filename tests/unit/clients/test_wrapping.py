"""Long lines on a terminal are broken between words, and commands stay whole."""

import pytest
from rich.text import Text

from clients.cli.render.tables import fit
from clients.cli.terminal.console import Terminal
from clients.cli.terminal.output import wrap


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("Try it again: septet retry wo-0f0fe251", 30, ["Try it again:", "septet retry wo-0f0fe251"]),
        ("Run `septet doctor --repo .` there", 20, ["Run", "`septet doctor --repo .`", "there"]),
        ("a: septet show wo-1, or septet cancel wo-1", 24, ["a: septet show wo-1, or", "septet cancel wo-1"]),
        ("say septet reject wo-1 --feedback 'A, B'", 30, ["say", "septet reject wo-1 --feedback 'A, B'"]),
        ("  in front of it", 10, ["  in front", "of it"]),
        ("Go on: SEPTET_STATE_DIR=/a /b/bin/septet up", 20, ["Go on:", "SEPTET_STATE_DIR=/a /b/bin/septet up"]),
        ("x" * 30 + " y", 20, ["x" * 30, "y"]),
        ("", 20, [""]),
    ],
)
def test_a_line_is_broken_between_words(text: str, width: int, lines: list[str]) -> None:
    """A command or quoted text is one word, and a word that is too long is not broken."""
    assert wrap(text, width).split("\n") == lines


@pytest.mark.parametrize("width", [60, 80, 100])
def test_what_is_printed_to_a_terminal_is_broken_between_words(width: int) -> None:
    """Printed lines fit the width, keep their colours, and are indented below a fact's first word."""
    words = "every agent says what it did and why " * 5
    out = Terminal(width=width, force_terminal=True, color_system="standard")
    with out.capture() as shown:
        out.print(Text.assemble(("  result    ", "bold"), words, ("red at the end", "red")), soft_wrap=True)
        out.print(words.strip(), soft_wrap=True)
    assert "\x1b[31mred" in shown.get()
    fact, plain = Text.from_ansi(shown.get()).plain.split("every", 1)[1].rsplit("end", 1)
    assert " ".join(plain.split()) == words.strip()
    assert all(len(line) <= width for line in plain.splitlines())
    assert all(line.startswith(" " * 12) and len(line) <= width for line in fact.splitlines()[1:])
    assert " ".join(fact.split()) == f"{words.strip()} red at the".removeprefix("every ")


def test_columns_give_way_in_their_order() -> None:
    """Columns shrink in the given order down to their least width; a column of width 0 goes with its gap."""
    assert fit([10, 30, 8], 60, ((1, 12),)) == [10, 30, 8]
    assert fit([10, 30, 8], 40, ((1, 12),)) == [10, 18, 8]
    assert fit([10, 30, 8], 30, ((1, 12), (2, 0))) == [10, 12, 4]
    assert fit([20, 30, 8], 36, ((1, 12), (2, 0))) == [20, 12, 0]
    assert fit([40, 0, 8], 36, ((2, 0),)) == [40, 0, 0]
    assert fit([20, 8, 8], 36, ((1, None), (2, None))) == [20, 0, 8]
