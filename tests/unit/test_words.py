"""The sentences that users read, checked with `scripts/check-words`."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[2]
WRONG: Final = (
    "The file is no table.",
    "Then the work goes on.",
    "The step wants a key.",
    "It has a home of its own.",
    "See that git is installed.",
    "This holds up the others.",
    "The step is under way.",
    "The figures are borne out.",
    "A person is to approve the plan.",
    "Nothing outlives the agent.",
    "It is nobody else's file.",
    "It was interrupted.",
    "It returns the board as it is then.",
    "The work is taken up again.",
    "The lock is held for ever.",
    "The answer is held against git.",
    "The work is gone on with.",
    "The finding is let pass.",
    "The host is waited for.",
    "The server stops, nobody hears of it.",
    "All hold, but for one.",
    "Put it beside the file.",
    "Whoever starts it, pays.",
    "It is free. Who takes it, owns it.",
    "The name shall be short.",
    "It compiles anew.",
    "It runs all the same.",
    "They find one another.",
    "The webhook tells of a push.",
    "It is not there any more.",
    "The name is to be short.",
    "It is gone, and doctor says so.",
    "What the agent wrote is kept.",
    "The name stands in the list.",
    "The file lies in the folder.",
    "It is shown on every face.",
    "Comment to have it planned again.",
    "It looks ever more rarely.",
)
"""The sentences in which a phrase is found."""


def test_what_users_read_has_none_of_the_banned_phrases() -> None:
    """README, documentation, page and errors contain no banned phrase."""
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check-words"], capture_output=True, text=True, check=False
    )

    assert checked.stderr == ""
    assert checked.returncode == 0


def test_each_phrase_is_found_where_it_occurs() -> None:
    """Each pattern finds one of the wrong sentences, and each wrong sentence has a banned phrase."""
    banned = runpy.run_path(str(ROOT / "scripts" / "check-words"))["BANNED"]

    assert [pattern for pattern in banned if not any(re.search(pattern, each) for each in WRONG)] == []
    assert [each for each in WRONG if not any(re.search(pattern, each) for pattern in banned)] == []
