import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git_env, make_origin
from fakes.run_records import RECORD

from clients.disk.workspace_view import WorkspaceView
from septet.agents.runs.folders import Run, Runs
from septet.git.engine.address import parse_address
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

KEY = "sk-ant-0123456789abcdef"


@pytest.fixture
def view(state: StateDir, tmp_path: Path) -> WorkspaceView:
    """Return the view of `wo-1`."""
    return WorkspaceView(state, git_env(tmp_path / "home"), "wo-1")


@pytest.fixture
def worktree(state: StateDir, view: WorkspaceView, tmp_path: Path) -> Path:
    """Return the open worktree of `wo-1`."""
    origin = make_origin(tmp_path / "origins")
    origin.push({"app.py": "print('hello')\n"})
    address = parse_address(str(origin.bare))
    return open_workspace(state, address, OrderStart("wo-1", "r"), env=view.git_env).worktree


def start(state: StateDir, serial: int, step: str = "implement_plan") -> Run:
    """Return a run with an empty output."""
    run, lock = Runs(state.runs).create("wo-1", 5, replace(RECORD, serial=serial, step=step), b"Work.\n")
    os.close(lock)
    run.stdout.touch()
    return run


def say(run: Run, role: str, block: object, **usage: int) -> None:
    """Append a message with one block to the agent's output."""
    message = {"id": f"m-{role}-{run.stdout.stat().st_size}", "role": role, "content": [block], "usage": usage}
    with run.stdout.open("a") as stream:
        stream.write(json.dumps({"type": role, "session_id": "s", "message": message}) + "\n")


def test_a_tool_call_is_under_way_until_its_result(state: StateDir, view: WorkspaceView) -> None:
    """The view shows the tool call from its request until its result."""
    run = start(state, 1)
    say(run, "assistant", {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file": "app.py"}})
    assert [entry.kind for entry in view.new_entries()] == ["tool_call"]
    assert view.doing is not None
    assert view.doing.tool == "Edit"
    say(run, "user", {"type": "tool_result", "tool_use_id": "1", "content": "done"})
    assert [entry.kind for entry in view.new_entries()] == ["tool_result"]
    assert view.doing is None


def test_tokens_of_the_run_under_way_are_counted(state: StateDir, view: WorkspaceView) -> None:
    """The tokens grow with the stream, belong to the running step, and start at zero in the next run."""
    assert view.tokens_of("implement_plan") == 0
    run = start(state, 1)
    say(run, "assistant", {"type": "text", "text": "a"}, input_tokens=100, output_tokens=10)
    assert view.tokens_of("implement_plan") == 110
    assert view.tokens_of("create_commit") == 0
    start(state, 2, "create_commit")
    assert view.tokens_of("create_commit") == 0


def test_plan_and_changes_are_read_from_the_worktree(view: WorkspaceView, worktree: Path) -> None:
    """Plan and changes come from the worktree, with masked keys."""
    (worktree / "specs").mkdir()
    (worktree / "specs" / "plan.md").write_text(f"# Plan\nUse {KEY}\n")
    (worktree / "app.py").write_text(f"print('bye')  # {KEY}\n")
    plan, diff = view.plan("specs/plan.md"), view.diff(now=True)
    assert plan is not None
    assert (plan.text, plan.whole) == ("# Plan\nUse ***\n", True)
    assert diff is not None
    assert [(file.path, file.added, file.removed) for file in diff.files] == [
        ("app.py", 1, 1),
        ("specs/plan.md", 2, 0),
    ]
    assert KEY not in diff.patch
