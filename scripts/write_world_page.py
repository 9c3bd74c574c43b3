#!/usr/bin/env python3
"""Write docs/world.md from the cases of tests/world; `make world` checks the results against the cases' marks."""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from world.case import Case, read_cases  # noqa: E402 -- after the path to it

PAGE = ROOT / "docs" / "world.md"
HEAD = """\
# What strangers report

Look here whether Septet meets an oddity of a CLI or forge that somebody has reported. Each report is a whole work
order in `tests/world/`, with a stand-in for the CLI, real git and a fake forge. `make world` runs all of them and
writes this page; `.ci/run` runs a sample. `tests/world/README.md` describes how a report becomes a case.

## Drawn before they were tried

A fixed rule drew forty public reports before anybody tried one of them: `tests/world/drawn.md` has the rule, what
happened and what was expected. At the first trial {first} of {drawn} came out right; now {right} do.

{drawn_list}
## From the project's own trials

These were written down because something came out wrong; each folder in `tests/world/cases` says what happens and
what is expected. {own_right} of {own} come out right{own_wrong}.
"""


def main() -> None:
    """Write the page."""
    cases = read_cases()
    drawn = sorted((case for case in cases if case.drawn), key=lambda case: case.drawn)
    own = [case for case in cases if not case.drawn]
    page = HEAD.format(
        first=sum(case.first == "right" for case in drawn),
        drawn=len(drawn),
        right=sum(not case.known for case in drawn),
        own_right=sum(not case.known for case in own),
        own=len(own),
        drawn_list=_list(drawn),
        own_wrong="".join(f"; `{case.name}` is {case.known}" for case in own if case.known),
    )
    PAGE.write_text(page, encoding="utf-8")


def _list(cases: Sequence[Case]) -> str:
    """Return a line for each report, below its program."""
    lines = []
    for program, group in groupby(cases, key=lambda case: case.name.split("_")[0]):
        lines += [f"- {program}", *(f"    - {_linked(case)}" for case in group)]
    return "\n".join((*lines, ""))


def _linked(case: Case) -> str:
    name = case.name.partition("_")[2].replace("_", " ")
    linked = f"[{name}]({case.source})" if case.source.startswith("https://") else name
    return f"{linked}: {case.known}" if case.known else linked


main()
