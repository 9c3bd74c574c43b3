"""A pipeline with real CLIs: two issues, and two agents that remember."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.agent_lab import agent_of, carriers, mark_of
from fakes.model_day import MODELS, Day
from fakes.model_stub import Asked, Model, Part
from fakes.repositories import Origin, make_origin
from fakes.solutions import task

from clients.temporal.work_orders import WorkOrders
from septet.agents.clis.registry import adapter_for
from septet.agents.turns.warm import warm_orders
from septet.git.engine.engine import Git
from septet.pipelines.inputs import PipelineInput, PipelineIssue
from septet.pipelines.views import PipelineView

pytestmark = pytest.mark.timeout(600)

PIPELINE: Final = "pl-real"
ISSUES: Final = ("alpha", "beta")
PLANNER: Final = f"{PIPELINE}-planner"
EXECUTOR: Final = f"{PIPELINE}-executor-1"


@dataclass
class LineModel(Model):
    parts: dict[str, Part] = field(default_factory=dict)

    def part(self, asked: Asked) -> Part | None:
        issue = issue_in(asked)
        return _parts(issue).get(asked.step) if issue else None

    def heard_in(self, issue: str, step: str) -> str:
        """Return the whole conversation at the model's first request in a step of an issue."""
        found = next(each for each in self.asked if (issue_in(each), each.step) == (issue, step))
        return "\n".join(found.heard)


def line_input(repository: str, **choices: Any) -> PipelineInput:
    issues = tuple(PipelineIssue(id=issue, title=f"Add {issue}.txt", body=f"It says {issue}.") for issue in ISSUES)
    return PipelineInput(repository=repository, issues=issues, **choices)


def branch_of(issue: str) -> str:
    return f"septet/feat-{PIPELINE}-{issue}-file"


def issue_in(asked: Asked) -> str:
    """Return the issue of a step's prompt; empty for a request beside the work."""
    return next((issue for issue in ISSUES if issue in asked.prompt), "")


def _parts(issue: str) -> dict[str, Part]:
    plan, file = f"specs/{PIPELINE}-{issue}-planner-file.md", f"{issue}.txt"
    one = task("T1", file, scope=file, title=f"Add {file}")
    solution = {
        "id": f"SOL-{issue}",
        "plan_path": plan,
        "summary": f"{file} is added.",
        "tasks": [one],
        "predicted_files": [file],
    }
    execution = {
        "status": "completed",
        "summary": f"{file} is there.",
        "tasks": [{"id": "T1", "status": "completed", "note": ""}],
        "commit_hash": None,
        "files_modified": [file],
    }
    return {
        "classify_issue": Part({"issue_class": "/feature"}),
        "build_plan": Part(solution, (f"mkdir -p specs && echo '# T1: add {file}' > {plan}",)),
        "find_plan_file": Part({"plan_path": plan}),
        "generate_branch": Part({"branch_name": branch_of(issue)}),
        "implement_plan": Part(execution, (f"echo {issue} > {file}",)),
        "create_commit": Part({"commit_message": f"feat: add {file}"}),
        "create_pull_request": Part({"title": f"Add {file}", "body": "It was wanted."}),
    }


Begun = Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
WITHIN_SECONDS = 300


@pytest.fixture
def model(day: Day) -> LineModel:
    """Return the day's model, which knows the pipeline's issues."""
    day.model = model = LineModel()
    return model


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return a repository with a file."""
    repository = make_origin(tmp_path, "app.git")
    repository.push({"README.md": "# app\n"})
    return repository


async def test_sessions_go_on_from_issue_to_issue(
    day: Day, model: LineModel, begun: Begun, origin: Origin
) -> None:
    """Each agent has one session for all issues, and one process if the CLI reads its turns from stdin."""
    async with begun(day) as orders:
        order = line_input(str(origin.bare), agent=day.cli, model=MODELS.get(day.cli))
        handle = await orders.client.start_workflow(
            "Pipeline", order, id=PIPELINE, task_queue=orders.task_queue, result_type=PipelineView
        )
        async with asyncio.timeout(WITHIN_SECONDS):
            view = await handle.result()
        lanes = {lane: day.runs.of(lane) for lane in (PLANNER, EXECUTOR)}
        left = warm_orders(day.runs)
    assert [(issue.status, issue.error) for issue in view.issues] == [("completed", None)] * 2
    assert left == []
    git = Git(origin.bare, env={"PATH": os.environ["PATH"]})
    for issue in ISSUES:
        assert git.run("show", f"{branch_of(issue)}:{issue}.txt") == f"{issue}\n".encode()
    assert [[run.record.step for run in runs if run.record] for runs in lanes.values()] == [
        ["classify_issue", "build_plan", "find_plan_file"] * 2,
        ["generate_branch", "implement_plan", "create_commit", "create_pull_request"] * 2,
    ]
    for runs in lanes.values():
        assert len({run.record.resumed_from for run in runs[1:] if run.record}) == 1
        warm = adapter_for(day.cli).capabilities.input_stream
        assert len({agent_of(run) for run in runs}) == (1 if warm else len(runs))
        assert all(carriers(mark_of(run)) == [] for run in runs)
    assert "Add alpha.txt" in model.heard_in("beta", "classify_issue")
    assert "SOL-alpha" in model.heard_in("beta", "implement_plan")
