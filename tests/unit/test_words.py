"""The sentences that users read, checked with `scripts/check-words`."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_users_read_has_none_of_the_banned_phrases() -> None:
    """README, documentation, page and errors contain no banned phrase."""
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check-words"], capture_output=True, text=True, check=False
    )

    assert checked.stderr == ""
    assert checked.returncode == 0


def test_a_banned_phrase_is_found() -> None:
    """The patterns find a phrase in a sentence."""
    banned = runpy.run_path(str(ROOT / "scripts" / "check-words"))["BANNED"]

    assert any(re.search(pattern, "Then the work goes on.") for pattern in banned)
