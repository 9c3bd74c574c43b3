import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parents[3] / "scripts" / "try_often.py"
_TESTS = """
import os
from pathlib import Path

def test_sound(): pass

def test_race():
    os.mkdir(Path(__file__).with_name("won"))
"""


def try_often(*args: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, str(_PROGRAM), "-p", "no:schemathesis", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)


def test_failures_are_counted_with_their_seeds(tmp_path: Path) -> None:
    """Each test has a row with its passes, failures and seeds, and the last line counts the runs."""
    tests = tmp_path / "test_it.py"
    tests.write_text(_TESTS)
    ended = try_often("--runs", "3", str(tests))
    *_, race, sound, closing = ended.stdout.splitlines()
    assert (ended.returncode, closing) == (1, "3 runs: 1 passed, 2 failed")
    assert race.split()[:2] == ["1", "2"]
    assert race.count(",") == 1, "two seeds"
    assert sound.split()[:2] == ["3", "0"]
    assert "FileExistsError" in ended.stdout


@pytest.mark.parametrize("test", ["missing.py", "test_it.py::test_missing"])
def test_a_name_without_a_test_is_told_at_once(tmp_path: Path, test: str) -> None:
    """A missing file or test ends the program before the first run."""
    (tmp_path / "test_it.py").write_text(_TESTS)
    ended = try_often("--runs", "1000", str(tmp_path / test))
    assert ended.returncode == 1
    assert "not found" in ended.stderr
