"""The commands of the runbook's tables, which a test runs only before a release."""

import re
from pathlib import Path

import pytest
from fakes.command_lines import unknown_parts

PAGE = (Path(__file__).parents[3] / "docs/operations/runbook.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """Return each command of Septet in the tables."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return sorted({found for row in rows for found in re.findall(r"`(septet [^`]+)`", row)})


@pytest.mark.parametrize("line", commands())
def test_a_command_that_is_not_run_exists(line: str) -> None:
    """Its subcommand and its options are those of `septet`."""
    assert unknown_parts(line) == set()


def test_what_does_not_exist_is_found() -> None:
    """A command, a subcommand and an option that `septet` does not have are each named."""
    assert unknown_parts("septet sing") == {"septet sing"}
    assert unknown_parts("septet budget sing") == {"septet budget sing"}
    assert unknown_parts("septet show wo-1 --loud") == {"--loud"}
