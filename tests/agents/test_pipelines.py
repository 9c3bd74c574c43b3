"""A pipeline with real CLIs: two issues, two agents that remember, and the cost of an agent's death."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from fakes.agent_lab import agent_of, carriers, mark_of
from fakes.model_day import MODELS, Day
from fakes.model_pipeline import EXECUTOR, ISSUES, PIPELINE, PLANNER, SUMMARY, LineModel, branch_of, line_input
from fakes.repositories import Origin, make_origin
from temporalio.client import WorkflowHandle

from clients.temporal.work_orders import WorkOrders
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import Run
from septet.agents.turns.warm import warm_orders
from septet.contracts.pipeline_view import PipelineView
from septet.git.engine.engine import Git

pytestmark = pytest.mark.timeout(600)

Begun = Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
WITHIN_SECONDS = 300
LANES = (PLANNER, EXECUTOR)


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


async def start(
    day: Day, orders: WorkOrders, origin: Origin, **choices: object
) -> WorkflowHandle[object, PipelineView]:
    """Start the pipeline, and return its handle."""
    order = line_input(str(origin.bare), agent=day.cli, model=MODELS.get(day.cli), **choices)
    return await orders.client.start_workflow(
        "Pipeline", order, id=PIPELINE, task_queue=orders.task_queue, result_type=PipelineView
    )


async def result_of(handle: WorkflowHandle[object, PipelineView]) -> PipelineView:
    """Return the pipeline's end."""
    async with asyncio.timeout(WITHIN_SECONDS):
        return await handle.result()


async def test_sessions_go_on_from_issue_to_issue(
    day: Day, model: LineModel, begun: Begun, origin: Origin
) -> None:
    """Each agent has one session for all issues, and one process if the CLI reads its turns from stdin."""
    async with begun(day) as orders:
        view = await result_of(await start(day, orders, origin))
        lanes = {lane: day.runs.of(lane) for lane in (PLANNER, EXECUTOR)}
        left = warm_orders(day.runs)
    assert [(issue.status, issue.error) for issue in view.issues] == [("completed", None)] * 2
    assert left == []
    git = Git(origin.bare, env={"PATH": os.environ["PATH"]})
    for issue in ISSUES:
        assert git.run("show", f"{branch_of(issue)}:{issue}.txt") == f"{issue}\n".encode()
    assert [_steps(runs) for runs in lanes.values()] == [
        ["classify_issue", "build_plan", "find_plan_file"] * 2,
        ["generate_branch", "implement_plan", "create_commit", "create_pull_request"] * 2,
    ]
    for runs in lanes.values():
        assert len(_sessions(runs)) == 1
        warm = adapter_for(day.cli).capabilities.input_stream
        agents = {run.name: agent_of(run) for run in runs}
        assert len({*agents.values()}) == (1 if warm else len(runs)), "\n".join(
            f"{agents[run.name]} {run.name}: {run.exit()}" for run in runs
        )
        assert all(carriers(mark_of(run)) == [] for run in runs)
    assert "Add alpha.txt" in model.heard_in("beta", "classify_issue")
    assert "SOL-alpha" in model.heard_in("beta", "implement_plan")


@pytest.mark.parametrize("cli", ["claude", "codex"], indirect=True)
async def test_session_goes_on_after_its_agent_was_killed(
    day: Day, model: LineModel, begun: Begun, origin: Origin, tmp_path: Path
) -> None:
    """After a SIGKILL in the second issue the session is resumed, and still knows the first issue."""
    mark = tmp_path / "in-the-tool"
    model.before["beta", "implement_plan"] = f"test -e {mark} || {{ touch {mark}; exec sleep 600; }}"
    async with begun(day) as orders:
        handle = await start(day, orders, origin)
        await day.appears(mark)
        killed = day.runs.of(EXECUTOR)[-1]
        os.kill(agent_of(killed), signal.SIGKILL)
        view = await result_of(handle)
        runs = day.runs.of(EXECUTOR)
    assert [(issue.status, issue.error) for issue in view.issues] == [("completed", None)] * 2
    taken_up = runs[[run.name for run in runs].index(killed.name) + 1].record
    assert killed.record is not None
    assert taken_up is not None
    assert (taken_up.step, taken_up.because) == ("implement_plan", "crashed")
    assert taken_up.resumed_from == killed.record.resumed_from is not None
    assert len(_sessions(runs)) == 1
    assert carriers(mark_of(killed)) == []
    assert "Add alpha.txt" in model.heard_in("beta", "create_commit")


@pytest.mark.parametrize("cli", ["claude", "codex"], indirect=True)
async def test_session_that_is_too_long_is_summarised(
    day: Day, model: LineModel, begun: Begun, origin: Origin
) -> None:
    """The summary turn follows the first issue, and the next issue's new session begins with the summary."""
    async with begun(day) as orders:
        view = await result_of(await start(day, orders, origin, context_tokens=1000))
        kept = [(day.root / "state" / "pipelines" / PIPELINE / "summaries" / f"{lane}.md") for lane in LANES]
        runs = {lane: day.runs.of(lane) for lane in LANES}
    assert [(issue.status, issue.error) for issue in view.issues] == [("completed", None)] * 2
    assert [[each.context for each in issue.sessions] for issue in view.issues] == [
        ["fresh", "fresh"],
        ["summarised", "summarised"],
    ]
    assert [path.read_text(encoding="utf-8") for path in kept] == [SUMMARY] * 2
    for lane in LANES:
        assert _steps(runs[lane]).count("summarise_session") == 1
    for step in ("classify_issue", "generate_branch"):
        heard = model.heard_in("beta", step)
        assert SUMMARY in heard
        assert "Add alpha.txt" not in heard


def _steps(runs: list[Run]) -> list[str]:
    return [run.record.step for run in runs if run.record is not None]


def _sessions(runs: list[Run]) -> set[str | None]:
    """Return the sessions that the runs after the first resumed."""
    return {run.record.resumed_from for run in runs[1:] if run.record is not None}
