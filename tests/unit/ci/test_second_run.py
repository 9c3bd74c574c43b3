import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

_FAKES = Path(__file__).parents[2]
_INI = f"""
[pytest]
pythonpath = {_FAKES}
addopts = -p no:schemathesis -p no:hypothesispytest -p no:asyncio -p no:anyio -p no:cacheprovider -ra
markers = law: a law
"""
_BEGIN = """
import os, random
from pathlib import Path
import pytest

def begins(name):
    file = Path(__file__).with_name(name)
    first = not file.exists()
    file.touch()
    return first
"""
_FLAKY = """
def test_race():
    assert not begins("race"), "it lost the race"
"""
_FAULT = """
def test_fault():
    assert False, "it is broken"
"""


@dataclass(frozen=True)
class Ended:
    code: int
    text: str

    @property
    def counts(self) -> str:
        """The closing line, which is the last line, without its seconds."""
        return re.sub(r" in [0-9.]+s.*", "", self.text.splitlines()[-1].strip("= "))


Run = Callable[..., Ended]


_WITH_XDIST = ("--numprocesses=2",)
_both_ways = pytest.mark.parametrize("run", [(), _WITH_XDIST], ids=["one process", "xdist"], indirect=True)
"""Failures reach xdist's controller in another way than a single process."""


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    how: tuple[str, ...] = getattr(request, "param", ())

    def run_project(*tests: str, args: tuple[str, ...] = ("--second-run",), begin: str = _BEGIN) -> Ended:
        (tmp_path / "pytest.ini").write_text(_INI)
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["fakes.second_run"]\n')
        (tmp_path / "test_it.py").write_text(begin + "\ndef test_sound(): pass\n" + "".join(tests))
        argv = [sys.executable, "-m", "pytest", *how, *args]
        ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        return Ended(ended.returncode, ended.stdout.rstrip())

    return run_project


_PROPERTY = """
@given(integers())
def test_small(number): assert number < 10_000
"""
_GIVEN = _BEGIN + "from hypothesis import given\nfrom hypothesis.strategies import integers\n"
_RACES = tuple(_FLAKY.replace("race", f"race_{number}") for number in range(4))


@pytest.mark.parametrize(
    ("tests", "begin", "counts", "words"),
    [
        ((_PROPERTY,), _GIVEN, "1 failed, 1 passed", ""),  # its example that failed is remembered
        ((_FLAKY, _FAULT), _BEGIN, "1 failed, 1 passed, 1 flaky", ""),
        (_RACES, _BEGIN, "4 failed, 1 passed", "no second run: more than 3 tests failed"),
        (("\n@pytest.mark.law" + _FLAKY,), _BEGIN, "1 failed, 1 passed", "It holds a law, and is not run again."),
    ],
    ids=["a property", "a fault beside a race", "four are no race", "a law"],
)
def test_a_second_run_takes_nothing_for_a_race_that_may_be_none(
    run: Run, tests: tuple[str, ...], begin: str, counts: str, words: str
) -> None:
    """Only a test that fails, then runs alone and passes, counts as flaky."""
    ended = run(*tests, begin=begin)
    assert (ended.code, ended.counts) == (int("failed" in counts), counts)
    assert words in ended.text


@_both_ways
def test_what_passes_alone_is_flaky_and_the_run_is_green(run: Run) -> None:
    """The flaky test is named with its seed and failure, and the run succeeds."""
    ended = run(_FLAKY, args=("--second-run", "--randomly-seed=77"))
    assert (ended.code, ended.counts) == (0, "1 passed, 1 flaky")
    assert "\nFLAKY test_it.py::test_race (seed 77)\n" in ended.text
    assert "it lost the race" in ended.text


@_both_ways
def test_what_cannot_be_collected_is_never_run_again(run: Run) -> None:
    """If a file cannot be collected, its tests are missing, so no test runs again."""
    ended = run(_FLAKY, begin=_BEGIN + "if begins('import'): raise ImportError\n")
    assert ended.code != 0
    assert "flaky" not in ended.text


@pytest.mark.parametrize("run", [_WITH_XDIST], ids=["xdist"], indirect=True)
def test_a_process_that_dies_under_a_test_is_a_failure_of_it(run: Run) -> None:
    """A test that kills its process runs again in a process of its own."""
    ended = run("\ndef test_deadly():\n    if begins('death'): os._exit(3)\n")
    assert (ended.code, ended.counts) == (0, "1 passed, 1 flaky")
