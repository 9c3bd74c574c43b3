"""Work orders with real CLIs: on a good day, and if the model, the machine or the answer fails."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from fakes.agent_lab import agent_of, carriers, mark_of, naming
from fakes.model_day import BRANCH, CLIS, PLAN, Day
from fakes.model_stub import Fault

from clients.temporal.work_orders import WorkOrders
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.logs import network_lines
from septet.contracts.names import SandboxChoice
from septet.git.engine.engine import Git

pytestmark = pytest.mark.timeout(600)

Begun = Callable[[Day], AbstractAsyncContextManager[WorkOrders]]


async def test_issue_becomes_a_pull_request(day: Day, begun: Begun) -> None:
    """The CLI does all seven steps, and the branch on the origin has the change."""
    async with begun(day) as orders:
        await day.start(orders)
        task = await orders.wait(day.order_id)
    assert (task.status, task.error) == ("completed", None)
    assert [step.success for step in task.steps] == [True] * 7
    assert task.branch_name == BRANCH
    git = Git(day.sample.origin, env={"PATH": os.environ["PATH"]})
    assert b"quantity >= BULK_QUANTITY" in git.run("show", f"{BRANCH}:shop/pricing.py")
    assert all(step.session_id for step in task.steps)
    assert all(len(day.runs_of(step.step)) == 1 for step in task.steps)
    assert {run.record.sandbox for run in day.runs.of(day.order_id) if run.record} == {"bwrap"}
    if day.cli == "claude":
        said = {run.folder.name: (run.folder / "stderr.log").read_text() for run in day.runs.of(day.order_id)}
        assert set(said.values()) == {""}, said  # for example five lines about a missing `.claude.json`
    asked = [line for run in day.runs.of(day.order_id) for line in network_lines(run) if line.request]
    assert len(asked) >= 7
    assert [(line.request, line.why) for line in asked if not line.allowed] == []
    if day.cli != "copilot":
        assert task.usage.input_tokens >= 7 * 800
        assert sum(line.output_tokens for line in asked) >= task.usage.output_tokens
        assert not [warning for step in task.steps for warning in step.warnings if "tokens" in warning]


@pytest.mark.parametrize("cli", ["codex"], indirect=True)
async def test_clis_own_sandbox_confines_where_ours_does_not(day: Day, begun: Begun) -> None:
    """In the CLI's own sandbox the worktree is writable and its `.git` is not, so the engine commits."""
    day.sandbox, day.sandboxed = "none", False
    locked = f"touch .git/mine 2>/dev/null || echo locked >> {PLAN}"
    day.does("build_plan", *day.model.parts["build_plan"].commands, locked)
    async with begun(day) as orders:
        await day.start(orders)
        task = await orders.wait(day.order_id)
    assert (task.status, task.error) == ("completed", None)
    git = Git(day.sample.origin, env={"PATH": os.environ["PATH"]})
    assert git.run("show", f"{BRANCH}:{PLAN}").endswith(b"locked\n")


async def test_answer_that_is_prose_is_mended_by_the_finalizer(day: Day, begun: Begun) -> None:
    """The finalizer asks the same session for its answer, and gets it."""
    day.goes_wrong(Fault("classify_issue", "prose", times=5))
    async with begun(day) as orders:
        await day.start(orders)
        step = await day.done(orders, "classify_issue")
        finalizers = day.runs_of("classify_issue-finalizer")
    assert (step.output, step.recovered_by) == ("/bug", "finalizer")
    assert [run.record.resumed_from for run in finalizers if run.record] == [step.session_id]


async def test_agent_killed_in_a_tool_call_is_taken_up_again(day: Day, begun: Begun, tmp_path: Path) -> None:
    """After a SIGKILL no process of the agent lives, and its session or a new session ends the step."""
    mark = tmp_path / "in-the-tool"
    slow = f"test -e {mark} || {{ touch {mark}; exec sleep 600; }}"
    day.does("build_plan", slow, *day.model.parts["build_plan"].commands)
    async with begun(day) as orders:
        await day.start(orders)
        await day.until(orders, lambda _: mark.exists())
        first = day.runs_of("build_plan")[0]
        os.kill(agent_of(first), signal.SIGKILL)
        await day.until(orders, lambda _: first.exit() is not None)
        assert carriers(mark_of(first)) == []
        step = await day.done(orders, "build_plan")
        second = day.runs_of("build_plan")[1].record
    assert step.success
    assert second is not None
    if adapter_for(day.cli).capabilities.resumes_after_kill:
        assert (second.because, second.resumed_from) == ("crashed", step.session_id)
    else:
        assert second.because == "rerun"


@pytest.mark.parametrize(
    ("cli", "sandbox"),
    [*((cli, "bwrap") for cli in CLIS), ("claude", "none"), ("opencode", "none")],
    indirect=["cli"],
)
async def test_process_that_a_tool_leaves_ends_with_its_step(
    day: Day, sandbox: SandboxChoice, begun: Begun, tmp_path: Path
) -> None:
    """A tool's background process in its own session is dead after the step, also without a sandbox."""
    day.sandbox, log = sandbox, tmp_path / "log"
    leave = f"touch {log}; setsid nohup tail -f {log} >/dev/null 2>&1 & sleep 0.2"
    leave += f"; grep -qsxzF -e{log} /proc/[0-9]*/cmdline && echo lives >> {log}"
    day.does("build_plan", leave, *day.model.parts["build_plan"].commands)
    async with begun(day) as orders:
        await day.start(orders)
        await day.done(orders, "build_plan")
        run = day.runs_of("build_plan")[0]
    assert run.record is not None
    assert (run.record.sandbox, log.read_text(encoding="utf-8")) == (sandbox, "lives\n")
    assert carriers(mark_of(run)) == naming(log) == []
