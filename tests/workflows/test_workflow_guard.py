"""The guard of workflow code: nothing that a replay could not repeat is done in a workflow, in whatever module."""

import ast
import asyncio
import inspect
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from fakes.forbidden_calls import CALLS, PLANTED, ForbiddenCalls, plant_calls
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import _restrictions

from septet.git.engine.address import parse_address
from workers.builds.build_id import import_closure
from workers.builds.workflow_guard import guard_module, install_guard

ROOT = Path(__file__).parents[2]
CLOSURE = import_closure(ROOT)


@pytest.fixture
def copies() -> list[ModuleType]:
    """Return a copy of each module of the closure, with all forbidden calls in it, under the guard."""
    install_guard()
    made = []
    for name, path in CLOSURE.items():
        module = ModuleType(name)
        module.__file__, module.__package__ = (
            str(path),
            name if path.name == "__init__.py" else name.rpartition(".")[0],
        )
        exec(compile(path.read_bytes(), path, "exec"), vars(module))  # noqa: S102 -- the module itself
        plant_calls(module)
        guard_module(module)
        made.append(module)
    return made


@pytest.mark.asyncio(loop_scope="session")
async def test_a_forbidden_call_is_refused_in_every_module(client: Client, copies: list[ModuleType]) -> None:
    """Clocks, chance, files, processes and the network are refused wherever workflow code reaches for them."""
    assert len(PLANTED) == len(copies) * len(CALLS)
    queue = f"guard-{uuid.uuid4().hex}"
    async with Worker(client, task_queue=queue, workflows=[ForbiddenCalls]):
        allowed = await client.execute_workflow(ForbiddenCalls.run, id=queue, task_queue=queue)
    assert allowed == []


def test_outside_of_workflows_nothing_is_refused(copies: list[ModuleType]) -> None:
    """The modules are used by activities and clients too, which find in them what they imported."""
    install_guard()
    module = copies[0]
    assert isinstance(vars(module)["now_of"].now(UTC), datetime)
    assert isinstance(datetime.now(UTC), vars(module)["now_of"])
    assert type(vars(module)["Place"]("/etc")) is type(Path("/etc"))
    assert vars(module)["system"].getpid() > 0
    assert parse_address("/a/../b.git").path == Path("/b.git")


def test_what_a_restricted_module_has_from_another_one_is_free() -> None:
    """`urllib.request` asks the network; `urlsplit`, which it imports, takes a text apart."""
    module = ModuleType("of_a_workflow")
    vars(module).update(asks_the_network=urlopen, takes_apart=urlsplit)
    guard_module(module)
    assert vars(module)["asks_the_network"] is not urlopen
    assert vars(module)["takes_apart"] is urlsplit


def test_no_module_of_a_workflow_imports_in_a_function() -> None:
    """The guard stands before what modules have imported: an import in a function would pass it by."""
    found = [
        f"{name}: {ast.unparse(statement)}"
        for name, path in CLOSURE.items()
        for function in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    assert found == []


def test_the_guard_s_parts_of_the_sdk_are_as_it_needs_them() -> None:
    """Private names of the SDK that the guard uses: when one changes, the guard has to."""
    proxy = inspect.signature(_restrictions._RestrictedProxy.__call__)
    assert list(proxy.parameters) == ["self", "args", "kwargs"]
    assert list(inspect.signature(_restrictions.RestrictedModule.__init__).parameters)[1:] == [
        "mod",
        "context",
        "matcher",
    ]
    fields = _restrictions._RestrictionState.__dataclass_fields__
    assert list(fields) == ["name", "obj", "context", "matcher"]
    assert callable(_restrictions._RestrictionState.from_proxy)
    assert hasattr(asyncio, "_get_running_loop")
    assert hasattr(sys, "_getframe")
    matcher = _restrictions.SandboxRestrictions.default.invalid_module_members
    assert {"only_runtime", "children", "use", "access", "exclude"} <= set(matcher.__dataclass_fields__)
