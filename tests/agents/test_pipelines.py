"""A pipeline with real CLIs: two issues, and two agents that remember."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from fakes.agent_lab import agent_of, carriers, mark_of
from fakes.model_day import MODELS, Day
from fakes.model_pipeline import EXECUTOR, ISSUES, PIPELINE, PLANNER, LineModel, branch_of, line_input
from fakes.repositories import Origin, make_origin

from clients.temporal.work_orders import WorkOrders
from septet.agents.clis.registry import adapter_for
from septet.agents.turns.warm import warm_orders
from septet.contracts.pipeline_view import PipelineView
from septet.git.engine.engine import Git

pytestmark = pytest.mark.timeout(600)

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
