import subprocess
import sys
from pathlib import Path

import pytest
from fakes.needs import skips

_ROOT = Path(__file__).parents[3]
_LIST = """
[thing]
lacking = "thing"
remedy = "apt-get install things"
tests = ["tests/test_it.py"]
"""
_CONFTEST = 'pytest_plugins = ["fakes.needs"]\n'
_INI = f"""
[pytest]
pythonpath = {_ROOT}/tests {_ROOT}
addopts = -p no:schemathesis -p no:hypothesispytest -p no:asyncio -p no:anyio -p no:cacheprovider -ra
markers = needs: a need
"""
_NEEDS = """
import pytest
@pytest.mark.needs("thing")
def test_needy(): pass
@pytest.mark.needs("thing")
def test_needy_too(): pass
def test_sound(): pass
"""


def _run(folder: Path, tests: str, *args: str, listed: str = _LIST) -> tuple[int, list[str]]:
    (folder / "tests").mkdir()
    for name, text in {
        "pytest.ini": _INI, "tests/conftest.py": _CONFTEST, "tests/skips.toml": listed, "tests/test_it.py": tests,
    }.items():  # fmt: skip
        (folder / name).write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", *args, "tests"]
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.rstrip().splitlines()


@pytest.mark.parametrize("how", [(), ("--numprocesses=2",)], ids=["one process", "xdist"])
def test_what_is_missing_is_counted_in_the_line_before_the_closing_one(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    """The line counts the skipped tests and names the need and its remedy."""
    code, lines = _run(tmp_path, _NEEDS, *how)
    assert (code, lines[-2]) == (0, "2 skipped: no thing (apt-get install things)")
    assert "1 passed, 2 skipped in " in lines[-1]


def test_on_a_machine_with_everything_nothing_is_skipped(tmp_path: Path) -> None:
    """With the option, a missing need is an error that names it."""
    code, lines = _run(tmp_path, _NEEDS, "--nothing-missing")
    assert (code, "2 failed, 1 passed" in lines[-1] or "1 passed, 2 errors" in lines[-1]) == (1, True)
    assert any("has no thing (apt-get install things)" in line for line in lines)


def test_what_one_world_tries_is_left_out_in_another_and_missed_in_the_one(tmp_path: Path) -> None:
    """Tests with only the excluded need are left out; a test whose need has to be there fails."""
    both = '@pytest.mark.needs("thing", "other")\ndef test_needs_more(): pass\n'
    other = _LIST.replace("[thing]", "[other]")
    code, lines = _run(tmp_path, _NEEDS + both, "--but-for=thing", "--has=thing", listed=_LIST + other)
    assert (code, "1 passed, 2 deselected, 1 error" in lines[-1]) == (1, True), lines[-1]


@pytest.mark.parametrize(
    "test",
    [
        "import pytest\ndef test_sly(): pytest.skip('not now')\n",
        "import pytest\n@pytest.mark.skipif(True, reason='not now')\ndef test_sly(): pass\n",
        "import pytest\npytest.skip('not now', allow_module_level=True)\n",
    ],
)
def test_any_other_skip_is_an_error(tmp_path: Path, test: str) -> None:
    """A test that skips itself for any other reason makes the run fail."""
    code, lines = _run(tmp_path, test)
    assert code != 0
    assert any("a skip that is not a need of tests/skips.toml" in line for line in lines)


def test_a_need_that_the_list_does_not_have_for_its_file_is_refused(tmp_path: Path) -> None:
    """A need that the list does not name for the test's file is a usage error."""
    code, lines = _run(tmp_path, _NEEDS.replace('"thing"', '"other"'))
    assert code == pytest.ExitCode.USAGE_ERROR, lines


def test_no_file_stands_on_the_list_that_needs_nothing() -> None:
    """Each listed file names the need, or takes parameters that name it."""
    for need, entry in skips(_ROOT).items():
        for file in entry["tests"]:
            text = (_ROOT / file).read_text(encoding="utf-8")
            assert f'"{need}"' in text or "with_needs(" in text, (need, file)
