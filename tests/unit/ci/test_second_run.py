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
    """How a run of a small project ended."""

    code: int
    text: str

    @property
    def counts(self) -> str:
        """The closing line without its seconds, which is the last one."""
        return re.sub(r" in [0-9.]+s.*", "", self.text.splitlines()[-1].strip("= "))

    def closings(self) -> int:
        """Count the lines that close a run of pytest."""
        return len(re.findall(r"(?m)^=*\s?\d+ (?:passed|failed|error).* in [0-9.]+s", self.text))


Run = Callable[..., Ended]


_WITH_XDIST = ("--numprocesses=2",)
_both_ways = pytest.mark.parametrize("run", [(), _WITH_XDIST], ids=["one process", "xdist"], indirect=True)
"""Where failures come to xdist's controller, they might come otherwise than in the only process."""


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run the tests of a project of its own with the option."""
    how: tuple[str, ...] = getattr(request, "param", ())

    def run_project(*tests: str, args: tuple[str, ...] = ("--second-run",), begin: str = _BEGIN) -> Ended:
        (tmp_path / "pytest.ini").write_text(_INI)
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["fakes.second_run"]\n')
        (tmp_path / "test_it.py").write_text(begin + "\ndef test_sound(): pass\n" + "".join(tests))
        argv = [sys.executable, "-m", "pytest", *how, *args]
        ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        return Ended(ended.returncode, ended.stdout.rstrip())

    return run_project


def test_a_run_in_which_nothing_failed_is_as_ever(run: Run) -> None:
    """The option alone changes nothing."""
    ended = run()
    assert (ended.code, ended.counts) == (0, "1 passed")


@_both_ways
def test_what_passes_alone_is_flaky_and_the_run_is_green(run: Run) -> None:
    """It is named with its seed and its failure, and counted as flaky and as nothing else."""
    ended = run(_FLAKY, args=("--second-run", "--randomly-seed=77"))
    assert (ended.code, ended.counts) == (0, "1 passed, 1 flaky")
    assert "\nFLAKY test_it.py::test_race (seed 77)\n" in ended.text
    assert "it lost the race" in ended.text


def test_the_second_run_has_the_seed_of_the_first(run: Run) -> None:
    """What failed because of its seed fails again."""
    test = "\ndef test_unlucky(): assert random.random() < 0, f'drew {random.random()}'\n"
    ended = run(test)
    drawn = re.findall(r"E +AssertionError: (drew [0-9.]+)", ended.text)
    assert (len(drawn), len(set(drawn))) == (2, 1)


def test_what_a_property_has_found_is_found_again(run: Run) -> None:
    """The example that failed is remembered: no second run is green by luck."""
    test = "\n@given(integers())\ndef test_small(number): assert number < 10_000\n"
    ended = run(test, begin=_BEGIN + "from hypothesis import given\nfrom hypothesis.strategies import integers\n")
    assert (ended.code, ended.counts) == (1, "1 failed, 1 passed")


def test_what_fails_again_is_a_fault(run: Run) -> None:
    """Both failures are shown, under the one closing line."""
    ended = run(_FAULT)
    assert (ended.code, ended.counts, ended.closings()) == (1, "1 failed, 1 passed", 1)
    assert "second run of test_it.py::test_fault: not passed" in ended.text
    assert ended.text.count("E       AssertionError: it is broken") == 2


def test_a_fault_beside_a_race_fails_the_run(run: Run) -> None:
    """Each failure has a verdict of its own."""
    ended = run(_FLAKY, _FAULT)
    assert (ended.code, ended.counts) == (1, "1 failed, 1 passed, 1 flaky")


def test_what_is_skipped_alone_has_not_passed(run: Run) -> None:
    """Only a test that ran can show that its failure was a race."""
    ended = run("\ndef test_sly():\n    if not begins('sly'): pytest.skip('not now')\n    assert False\n")
    assert (ended.code, ended.counts) == (1, "1 failed, 1 passed")


def test_more_than_three_failures_have_no_second_run(run: Run) -> None:
    """So many are no race."""
    races = [_FLAKY.replace("race", f"race_{number}") for number in range(4)]
    ended = run(*races)
    assert (ended.code, ended.counts) == (1, "4 failed, 1 passed")
    assert "no second run: more than 3 tests failed" in ended.text


def test_a_law_has_no_second_run(run: Run) -> None:
    """One failure of what may never happen is enough."""
    ended = run("\n@pytest.mark.law" + _FLAKY)
    assert (ended.code, ended.counts) == (1, "1 failed, 1 passed")
    assert "It holds a law, and is not run again." in ended.text


@_both_ways
@pytest.mark.parametrize("when", ["yield", "pass\n    yield"], ids=["teardown", "set-up"])
def test_an_error_around_a_test_is_a_failure_of_it(run: Run, when: str) -> None:
    """Set-up and teardown can lose a race too; the test is counted once."""
    check = "\n    assert not begins('around')\n"
    body = f"    yield{check}" if when == "yield" else f"{check}    yield\n"
    ended = run(f"\n@pytest.fixture\ndef around():\n{body}\ndef test_within(around): pass\n")
    assert (ended.code, ended.counts) == (0, "1 passed, 1 flaky")


@_both_ways
def test_what_cannot_be_collected_is_never_run_again(run: Run) -> None:
    """Tests are missing, whatever passes."""
    ended = run(_FLAKY, begin=_BEGIN + "if begins('import'): raise ImportError\n")
    assert ended.code != 0
    assert "flaky" not in ended.text


def test_without_the_option_a_failure_is_a_failure(run: Run) -> None:
    """A developer's plain run tells at once."""
    ended = run(_FLAKY, args=())
    assert (ended.code, ended.counts) == (1, "1 failed, 1 passed")


def test_missing_coverage_fails_a_run_whose_tests_are_flaky(run: Run, tmp_path: Path) -> None:
    """The bound of the coverage counts after the second run."""
    (tmp_path / "unread.py").write_text("if len('a') > 1:\n" + "    print()\n" * 20)
    args = ("--second-run", "--cov=unread", "--cov-fail-under=90")
    ended = run("\nimport unread\n", _FLAKY, args=args)
    assert (ended.code, ended.counts) == (1, "1 passed, 1 flaky")


@pytest.mark.parametrize("run", [_WITH_XDIST], ids=["xdist"], indirect=True)
def test_a_process_that_dies_under_a_test_is_a_failure_of_it(run: Run) -> None:
    """What kills its process once runs again in one of its own."""
    ended = run("\ndef test_deadly():\n    if begins('death'): os._exit(3)\n")
    assert (ended.code, ended.counts) == (0, "1 passed, 1 flaky")
