import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from fakes.warm_command import WARM

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("suite", ["faces", "recovery"])
def test_a_suite_is_looked_for_wherever_a_test_is_marked_for_it(suite: str) -> None:
    """The folders that a suite's target collects contain every test with the suite's mark."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (programs,) = re.findall(r"^PROGRAMS := (.+)", makefile, re.MULTILINE)
    (words,) = re.findall(rf'-m "{suite} and not release" (.+)', makefile)
    places = [ROOT / word for word in words.replace("$(PROGRAMS)", programs).split() if word.startswith("tests/")]
    assert set(places) <= {ROOT / word for word in programs.split()}
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if f"pytest.mark.{suite}" in path.read_text()]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(place) for place in places)] == []


def test_what_commands_find_imported_already_is_there() -> None:
    """Each module that commands import in advance exists."""
    assert [name for name in WARM if find_spec(name) is None] == []
