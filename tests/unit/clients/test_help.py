import subprocess
import sys
from pathlib import Path

from clients.cli.commands import GROUPS
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
