#!/usr/bin/env python3
"""Write docs/world.md from the cases of tests/world, whose marks `make world` holds against what comes out."""

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from world.case import Case, read_cases  # noqa: E402 -- after the path to it

PAGE = ROOT / "docs" / "world.md"
HEAD = """\
# What strangers report

Septet meets agent CLIs, repositories and forges that behave oddly. Public reports about them are whole work orders
in `tests/world/`, a folder for each, with a stand-in for the CLI, real git and a fake forge. `make world` runs all
of them and writes this page; `.ci/run` runs a sample. `tests/world/README.md` describes how a report becomes a
case.

## Drawn before they were tried

A fixed rule drew forty public reports before anybody tried one of them: `tests/world/drawn.md` has the rule, what
happened and what was expected. At the first trial {first} of {drawn} came out right; now {right} do.

{drawn_table}
## From the project's own trials

These were written down because something came out wrong; each folder in `tests/world/cases` says what happens and
what is expected. {own_right} of {own} come out right{own_wrong}.
"""
COLUMNS = ("| Case | What happens | What is expected | What comes out |", "| --- | --- | --- | --- |")


def main() -> None:
    """Write the page anew."""
    cases = read_cases()
    drawn = sorted((case for case in cases if case.drawn), key=lambda case: case.drawn)
    own = [case for case in cases if not case.drawn]
    page = HEAD.format(
        first=sum(case.first == "right" for case in drawn),
        drawn=len(drawn),
        right=sum(not case.known for case in drawn),
        own_right=sum(not case.known for case in own),
        own=len(own),
        drawn_table=_table(drawn),
        own_wrong="".join(f"; `{case.name}` is {case.known}" for case in own if case.known),
    )
    PAGE.write_text(page, encoding="utf-8")


def _table(cases: Sequence[Case]) -> str:
    rows = (
        f"| {_name(case)} | {_cell(case.happens)} | {_cell(case.expects)} | {_cell(case.known) or 'right'} |"
        for case in cases
    )
    return "\n".join((*COLUMNS, *rows, ""))


def _name(case: Case) -> str:
    name = f"`{case.name}`"
    return f"{case.drawn}. [{name}]({case.source})" if case.source.startswith("https://") else name


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;")


main()
