import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")
SEPTET = Path(sys.executable).parent / "septet"


@cache
def strings() -> tuple[str, ...]:
    """Return the strings of the product that are not docstrings, including the parts of f-strings."""
    found: list[str] = []
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        constants = (
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in described
        )
        found += [node.value for node in constants if isinstance(node.value, str)]
    return tuple(found)


def septet(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `septet` without a clone and without a server."""
    return subprocess.run(
        [SEPTET, *words],
        env={"HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def pages() -> list[dict[str, Any]]:
    """Return the listed pages."""
    answer = json.loads(septet("docs", "--json").stdout)
    listed: list[dict[str, Any]] = answer["pages"]
    return listed


def test_every_page_that_a_message_names_is_listed(pages: list[dict[str, Any]]) -> None:
    """A message names a page as `septet docs NAME`, so that users without a clone can read it."""
    named = {name for text in strings() for name in re.findall(r"septet docs ([a-z][a-z/_-]*)", text)}
    assert named >= {"commands", "containers", "forges"}
    assert named - {page["name"] for page in pages} == set()
    assert [text for text in strings() if re.search(r"\bdocs/[a-z/_-]+\.md\b", text)] == []


def test_a_page_is_printed_as_it_is_written() -> None:
    """A pipe gets the page's Markdown, and `--json` its name, title and text."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert septet("docs", "glossary").stdout == text
    assert json.loads(septet("docs", "glossary", "--json").stdout)["page"] == {
        "name": "glossary",
        "title": "Glossary",
        "text": text,
    }


@pytest.mark.parametrize("name", ["nothing", "../README", "adr/0003-dependencies"])
def test_a_page_that_there_is_not_is_refused(name: str) -> None:
    """A name that is not listed is refused, also if it is a path."""
    refused = septet("docs", name, "--json")
    assert refused.returncode == 3
    error = json.loads(refused.stdout)["error"]
    assert (error["message"], error["remedy"]) == (f"There is no page {name}.", "`septet docs` lists the pages.")
