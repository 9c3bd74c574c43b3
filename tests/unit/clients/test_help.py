import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from clients.cli.commands import GROUPS, CommandRow
from clients.cli.commands import SEPTET as TABLE

SEPTET = Path(sys.executable).parent / "septet"


def help_of(*words: str) -> str:
    """Return the output of `--help` in a terminal of 100 columns."""
    done = subprocess.run(
        [SEPTET, *words, "--help"],
        env={"COLUMNS": "100", "TERMINAL_WIDTH": "100", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_each_command_stands_in_one_group() -> None:
    """`septet --help` lists every command in exactly one group."""
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(TABLE.commands)


def test_no_sentence_is_cut() -> None:
    """The groups keep their order, and each command's sentence is whole."""
    shown = help_of()
    places = [shown.index(f"{heading}:") for heading in GROUPS]
    assert places == sorted(places)
    assert "..." not in shown.replace("[ARGS]...", "")


def test_an_option_says_what_goes_there() -> None:
    """Choices and defaults are shown, and no option shows a type of Python."""
    shown = help_of("run")
    for words in ("--title TEXT", "--agent AGENT", "--priority 1-5", "--id ID", "[default: 3]", "--after-until"):
        assert words in shown
    for words in ("<int>", "<str>", "<path>", "<list"):
        assert words not in shown.partition("Options:")[2]
    assert "ID...  One work order or more" in help_of("retry")


def commands_of(row: CommandRow) -> Iterator[CommandRow]:
    """Yield a command and all its subcommands."""
    yield row
    for below in row.commands.values():
        yield from commands_of(below)
