"""Names on the wire do not change, since histories replay and old clients continue.

`tests/data/wire/names.json` has the names. A new name is added there; no name is changed or removed.
"""

import ast
import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import temporalio.activity
import temporalio.workflow
from fakes.unreached import unreached

import activities
import clients
import septet
import workers
import workflows
from clients.http.app import api_of
from clients.mcp.tools import TOOLS
from septet.errors import SeptetError

DATA = Path(__file__).parents[1] / "data" / "wire" / "names.json"
PACKAGES = (septet, activities, workflows, workers, clients)
PROGRAMS = ("septet.agents.supervisor.", "septet.agents.scripted.")
"""The programs whose modules may run at their import; they do not use Temporal."""


@cache
def frozen() -> dict[str, Any]:
    names: dict[str, Any] = json.loads(DATA.read_text())
    return names


@cache
def modules() -> tuple[ModuleType, ...]:
    infos = (
        each for package in PACKAGES for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    return tuple(importlib.import_module(each.name) for each in infos if not each.name.startswith(PROGRAMS))


def classes() -> Iterator[type]:
    for module in modules():
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__:
                yield kind


def texts_in(value: ast.expr, module: ModuleType) -> Iterator[str]:
    if isinstance(value, ast.Name) and isinstance(constant := getattr(module, value.id, None), str):
        yield constant
    for node in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_types_of_errors() -> None:
    """The classes of errors have the recorded names, which Temporal and programs see."""
    kinds = {
        kind.__name__ for kind in classes() if issubclass(kind, SeptetError) and not kind.__name__.startswith("_")
    }
    assert sorted(kinds) == frozen()["errors"]


def test_types_of_failures() -> None:
    """The types of failures and of errors in a task are the recorded types."""
    literals = {
        text
        for module in modules()
        for call in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"ApplicationError", "TaskError"}
        for keyword in call.keywords
        if keyword.arg == "type"
        for text in texts_in(keyword.value, module)
    }
    assert sorted(literals) == frozen()["failures"]


def test_workflows_and_what_they_hear() -> None:
    """Workflows, signals, queries and updates have the recorded names."""
    definitions = filter(None, map(temporalio.workflow._Definition.from_class, classes()))
    assert {
        str(definition.name): {
            "signals": sorted(filter(None, definition.signals)),
            "queries": sorted(filter(None, definition.queries)),
            "updates": sorted(filter(None, definition.updates)),
        }
        for definition in definitions
    } == frozen()["workflows"]


def test_activities() -> None:
    """Activities have the recorded names."""
    definitions = (
        temporalio.activity._Definition.from_callable(member)
        for kind in classes()
        if kind.__module__.startswith("activities.")
        for _, member in inspect.getmembers(kind, inspect.isfunction)
    )
    assert sorted({str(each.name) for each in definitions if each is not None}) == frozen()["activities"]


async def test_paths_and_components_of_the_api(tmp_path: Path) -> None:
    """The HTTP API has the recorded paths, methods and components."""
    described = api_of(await unreached(tmp_path), None).openapi()
    assert sorted(described["components"]["schemas"]) == frozen()["components"]
    assert {path: sorted(methods) for path, methods in described["paths"].items()} == frozen()["paths"]


def test_tools() -> None:
    """The MCP tools have the recorded names."""
    assert sorted(TOOLS) == frozen()["tools"]
