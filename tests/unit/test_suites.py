import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from fakes.warm_command import WARM

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("suite", ["faces", "recovery"])
def test_a_suite_is_looked_for_wherever_a_test_is_marked_for_it(suite: str) -> None:
    """Its target collects a part of the tests, which takes half of the time; no marked one is outside that part."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (programs,) = re.findall(r"^PROGRAMS := (.+)", makefile, re.MULTILINE)
    (words,) = re.findall(rf'-m "{suite} and not release" (.+)', makefile)
    places = [ROOT / word for word in words.replace("$(PROGRAMS)", programs).split() if word.startswith("tests/")]
    assert set(places) <= {ROOT / word for word in programs.split()}
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if f"pytest.mark.{suite}" in path.read_text()]
    assert marked
    assert [path for path in marked if not any(path.is_relative_to(place) for place in places)] == []


def test_what_commands_find_imported_already_is_there() -> None:
    """A module that has another name now would be left out in silence, and each command would import it again."""
    assert [name for name in WARM if find_spec(name) is None] == []
