"""A name with a leading underscore is private to its directory and the directories below."""

import ast
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients", "bench")


def test_what_is_private_is_imported_from_its_own_directory_and_those_below_it_alone() -> None:
    """Each private name is imported only in its own directory and below, so that it can change freely."""
    modules = [path for folder in (*PACKAGES, "tests", "scripts") for path in (ROOT / folder).rglob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules
        for name in private_imports(path.read_text(encoding="utf-8"))
        if home_of(name) not in path.parents
    ]
    assert wrong == []


def private_imports(code: str) -> Iterator[str]:
    """Yield the imports of our private names in a module, each up to its first private part."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in PACKAGES:
                yield from (
                    part
                    for part in accumulate(name.split("."), "{}.{}".format)
                    if is_private(part.rpartition(".")[2])
                )


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def home_of(name: str) -> Path:
    folder = ROOT.joinpath(*name.split(".")[:-1])
    return folder if folder.is_dir() else folder.parent


def test_a_private_import_is_found() -> None:
    """A private name of a public module is found, and its directory is that of the module."""
    assert list(private_imports("from workflows.board import _begin, Board")) == ["workflows.board._begin"]
    assert home_of("workflows.board._begin") == ROOT / "workflows"
