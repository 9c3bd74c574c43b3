"""The sentences that users read, held by scripts/check-words."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_users_read_has_none_of_the_banned_phrases() -> None:
    """README, documentation, page and errors say things as a colleague would."""
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check-words"], capture_output=True, text=True, check=False
    )

    assert checked.stderr == ""
    assert checked.returncode == 0
