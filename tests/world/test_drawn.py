"""The log of the reports that were drawn before their first trial, and their cases."""

import re
from pathlib import Path

from world.case import read_cases

LOG = Path(__file__).with_name("drawn.md")


def test_every_drawn_report_is_a_case_with_the_outcome_of_its_first_trial() -> None:
    """Number, name, address and first outcome of each drawn case equal those of the log."""
    entry = r"^\*\*(\d+)\. `(\w+)`\*\* · \[[^\]]+\]\((\S+)\).* · first trial: (right|wrong)"
    logged = re.findall(entry, LOG.read_text(encoding="utf-8"), re.MULTILINE)
    drawn = [case for case in read_cases() if case.drawn]
    found = [(str(case.drawn), case.name, case.source, case.first.partition(":")[0]) for case in drawn]
    assert sorted(found) == sorted(logged)
    assert len(logged) == 40
