"""The guard of workflow code: no module does in a workflow what a replay cannot repeat."""

import ast
import sys
import uuid
from pathlib import Path

import pytest
from fakes.forbidden_calls import CALLS, ForbiddenCalls, find_forbidden, planted_calls
from temporalio.client import Client
from temporalio.worker import Worker

from workers.builds.build_id import import_closure

ROOT = Path(__file__).parents[2]
CLOSURE = import_closure(ROOT)
ALLOWED = {
    "septet.contracts.wire": [
        "pathlib.Path.read_bytes"
    ],  # reads docstrings for a JSON schema; no workflow makes it
    "septet.system.masking": ["threading.Lock"],  # made at import, for activities that read keys in threads
}


@pytest.mark.asyncio(loop_scope="session")
async def test_the_sandbox_refuses_forbidden_calls(client: Client) -> None:
    """The SDK's sandbox refuses clocks, chance, files, processes and the network while a workflow runs."""
    queue = f"guard-{uuid.uuid4().hex}"
    async with Worker(client, task_queue=queue, workflows=[ForbiddenCalls]):
        allowed = await client.execute_workflow(ForbiddenCalls.run, id=queue, task_queue=queue)
    assert allowed == (["whether a file is there"] if sys.version_info >= (3, 14) else [])


@pytest.mark.parametrize("name", CLOSURE)
def test_no_module_of_a_workflow_names_what_a_replay_cannot_repeat(name: str) -> None:
    """The sandbox passes most modules unchecked; no module's text has a forbidden call, and each planted call is found."""
    code, allowed = CLOSURE[name].read_text(encoding="utf-8"), ALLOWED.get(name, [])
    assert list(find_forbidden(code)) == allowed
    assert len(list(find_forbidden(f"{code}\n{planted_calls()}"))) == len(CALLS) + len(allowed)


def test_no_module_of_a_workflow_imports_in_a_function() -> None:
    """The sandbox takes the modules of import statements; an import in a function would evade the sandbox."""
    found = [
        f"{name}: {ast.unparse(statement)}"
        for name, path in CLOSURE.items()
        for function in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    assert found == []
