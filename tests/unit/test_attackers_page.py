"""The tables in docs/attacks.md, which `make escape` writes, and the tests that they name."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.attackers import GAINS, attackers_table
from fakes.door_routes import door_table
from fakes.escape_routes import escape_table
from fakes.resource_routes import resource_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("table", [attackers_table, door_table, escape_table, resource_table])
def test_the_page_has_each_table(table: Callable[[], str]) -> None:
    """The page has the table of the list that the tests try."""
    assert table() in (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("test", sorted({each.test for each in GAINS}))
def test_each_test_of_the_table_is_there(test: str) -> None:
    """Each test that the table names exists."""
    file, _, name = test.partition("::")
    body = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body
    assert name in {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
