"""The bounds of the structure: sizes of modules and rooms, folders of features, and words of docstrings."""

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

ROOT = Path(__file__).parents[2]
BOUNDS: Final = {
    "modules over 300 lines": 0,
    "functions with more than 5 parameters": 1,
    "noqa": 43,
    "modules with one importer": 104,
    "imports inside functions": 20,
    "modules with an underscore": 0,
    "folders of pipeline": 5,
    "folders of pull_request": 5,
    "folders of budget": 5,
    "folders of intake": 5,
    "folders of board": 5,
    "folders of tracker": 4,
    "folders of rescue": 2,
    "folders of janitor": 2,
    "folders of seal": 2,
    "settings": 92,
    "dependencies that run": 20,
    "`told` in docstrings": 10,
    "`asked` in docstrings": 10,
    "`tell` in docstrings": 10,
    "`whoever` in docstrings": 10,
    "`goes on` in docstrings": 10,
}
"""The bound of each row of `scripts/measure-house`."""
LARGE_ROOMS: Final = {
    "septet.contracts": "the wire's values refer to each other: several rooms would import in circles",
}
"""The rooms that may have more than 14 modules, each with its reason."""


@pytest.fixture(scope="module")
def house() -> Any:
    return runpy.run_path(str(ROOT / "scripts" / "measure-house"))["House"](ROOT)


def test_each_figure_of_the_structure_keeps_its_bound(house: Any) -> None:
    """Each figure of the structure stays within its bound."""
    figures = house.figures()
    assert {row: int(figures[row]) for row, most in BOUNDS.items() if int(figures[row]) > most} == {}
    assert int(figures["settings"]) == BOUNDS["settings"], (
        "a setting more or fewer is a decision, or is not counted"
    )


def test_only_named_rooms_are_large(house: Any) -> None:
    """A room with more than 14 modules is listed above with a reason."""
    assert {room for room, (modules, _, _) in house.rooms().items() if modules > 14} == set(LARGE_ROOMS)
