"""The table by attacker in docs/attacks.md, which `make escape` writes, and its tests."""

import ast
from pathlib import Path

import pytest
from fakes.attackers import GAINS, attackers_table

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_by_attacker() -> None:
    """The page has the table of the list in the code."""
    assert attackers_table() in (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("test", sorted({each.test for each in GAINS}))
def test_each_test_of_the_table_is_there(test: str) -> None:
    """Each test that the table names exists."""
    file, _, name = test.partition("::")
    body = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body
    assert name in {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
