"""The rest of a new user's hour: clone, demo, cancel, crash, retry, a plan alone, Temporal, tools of agents."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.mcp_client import tools_of
from fakes.newcomer import BODY, TITLE, Newcomer, newcomer_at
from fakes.repositories import git
from fakes.septet_command import Septet
from fakes.terminal import terminal
from fakes.waiting import until

pytestmark = [pytest.mark.newcomer, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def test_a_fresh_clone_runs_the_demo(tmp_path: Path) -> None:
    """`git clone` into an empty folder and `make demo` give seven steps and a command that can be pasted."""
    clone = tmp_path / "septet"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    env = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHON": sys.executable}
    for name in ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL"):  # the clone's `make` must not see the tests' `make`
        env.pop(name, None)
    demo = subprocess.run(["make", "demo"], cwd=clone, env=env, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stderr[-2000:]
    steps = [line.split()[1] for line in demo.stdout.splitlines() if line.startswith("✓")]
    assert (len(steps), steps[-1]) == (7, "create_pull_request")
    *_, command = demo.stdout.strip().splitlines()
    program = command.split()[1]
    assert command.startswith(f"SEPTET_STATE_DIR={tmp_path}")
    assert shutil.which(program, path=env["PATH"]) or Path(program).is_file()
    assert git(clone, "status", "--porcelain") == ""


def test_the_demo_is_watched_at_a_terminal(septet: Septet) -> None:
    """If an agent dies halfway, the rescue is named, and the step still continues."""
    with terminal(septet, "demo", "--scenario", "crash") as screen:
        screen.until("classify_issue")
        screen.until("completed")
        code, rest = screen.end()
    assert code == 0, rest
    assert "rescue" in rest
    assert "pull request  file://" in rest


def test_what_was_cancelled_is_continued(newcomer: Newcomer, tmp_path: Path) -> None:
    """Ctrl-C leaves the work order running and names it; cancel keeps the work in a rescue; retry continues at the step."""
    shop = newcomer.repository(tmp_path / "shop")
    newcomer.septet.scenario("wo-slow", {"steps": {"implement_plan": [{"delay_seconds": 600}, {}]}})
    words = ("run", "--title", TITLE, "--body", BODY, "--id", "wo-slow", "--wait")
    with terminal(newcomer.septet, *words, cwd=shop) as screen:
        screen.until("implement_plan")
        newcomer.septet.until_works("wo-slow", "5-implement_plan-1")
        screen.interrupt()
        code, rest = screen.end()
    assert code == 130
    assert "Stopped waiting; wo-slow is still running." in rest
    assert "septet watch wo-slow" in rest
    cancelled = newcomer.septet("cancel", "wo-slow")
    assert (cancelled.code, "rescue        wo-slow/" in cancelled.out) == (0, True), cancelled
    until(lambda: "septet retry wo-slow" in newcomer.septet("show", "wo-slow").out)
    assert "wo-slow/" in newcomer.septet("rescue", "list", "wo-slow").out
    with terminal(newcomer.septet, "retry", "wo-slow", "--wait") as screen:
        screen.until("wo-slow continues")
        code, rest = screen.end()
    assert (code, "pull request  file://" in rest) == (0, True), rest
    assert [name for name in newcomer.septet.runs("wo-slow") if "plan-" in name] == [
        "2-build_plan-1", "5-implement_plan-1", "5-implement_plan-2",
    ]  # fmt: skip


def test_septet_up_that_is_killed_continues(tmp_path: Path) -> None:
    """After a SIGKILL the next `septet up` takes the work over: no agent starts twice, and the work order completes."""
    with newcomer_at(tmp_path / "machine") as first:
        shop = first.repository(tmp_path / "shop")
        first.septet.scenario("wo-crash", {"steps": {"implement_plan": [{"delay_seconds": 5}]}})
        words = ("run", "--title", TITLE, "--body", BODY, "--id", "wo-crash")
        assert first.septet(*words, cwd=shop).code == 0
        first.septet.until_works("wo-crash", "5-implement_plan-1")
        first.up.process.send_signal(signal.SIGKILL)
        first.up.end()
        with first.septet.up():
            assert first.septet.closed("wo-crash")["status"] == "completed"
        assert [name for name in first.septet.runs("wo-crash") if name.startswith("5-")] == ["5-implement_plan-1"]


def test_a_plan_alone_is_read_and_then_implemented(newcomer: Newcomer, tmp_path: Path) -> None:
    """--plan-only ends with the plan and the next command, which implements the plan."""
    shop = newcomer.repository(tmp_path / "shop")
    words = ("run", "--title", TITLE, "--body", BODY, "--id", "wo-plan", "--plan-only", "--wait")
    with terminal(newcomer.septet, *words, cwd=shop) as screen:
        code, painted = screen.end()
    assert (code, "septet retry wo-plan" in painted) == (0, True)
    newcomer.up.until("wo-plan has its plan: septet plan wo-plan")
    assert "replace `Helo` with `Hello`" in newcomer.septet("plan", "wo-plan").out
    assert newcomer.septet("retry", "wo-plan", "--wait").code == 0
    assert git(shop, "log", "--format=%s", "-1", newcomer.septet.closed("wo-plan")["branch_name"])


def test_temporals_own_command_line_starts_and_shows_it(newcomer: Newcomer, tmp_path: Path) -> None:
    """The start with a JSON object works; an error of an input is in plain words."""
    shop = newcomer.repository(tmp_path / "shop")
    start = ("workflow", "start", "--task-queue", "septet", "--type", "WorkOrder")
    order = json.dumps({"repository": str(shop), "title": TITLE, "description": BODY})
    assert newcomer.septet.temporal(*start, "--workflow-id", "wo-temporal", "--input", order).code == 0
    assert newcomer.septet.closed("wo-temporal")["status"] == "completed"
    details = newcomer.septet.temporal("workflow", "metadata", "--workflow-id", "wo-temporal").out
    assert "| ✓\u00a0create_pull_request" in details
    wrong = newcomer.septet.temporal(*start, "--workflow-id", "wo-wrong", "--input", '{"repo": "x"}')
    assert wrong.code == 0
    until(lambda: "FAILED" in newcomer.septet.temporal("workflow", "describe", "-w", "wo-wrong").out.upper())
    result = newcomer.septet.temporal("workflow", "result", "--workflow-id", "wo-wrong")
    told = f"{result.out}{result.err}"
    assert "repository is missing" in told
    assert "pydantic" not in told


async def test_an_agent_gives_work_by_tools(newcomer: Newcomer, tmp_path: Path) -> None:
    """Over MCP an agent starts a work order and reads its changes; a mistake has the command line's message."""
    shop = newcomer.repository(tmp_path / "shop")
    async with tools_of(newcomer.septet, tmp_path / "mcp.log") as tools:
        started = await tools("run", repository=str(shop), title=TITLE, description=BODY, id="wo-tools")
        assert started["task"]["id"] == "wo-tools"
        task = newcomer.septet.closed("wo-tools")
        assert task["status"] == "completed"
        diff = await tools("diff", id="wo-tools")
        assert "+greeting fixed" in diff["diff"]["patch"]
        wrong = await tools.refused("run", repository=str(shop), title="T", agent="codex")
    typed = newcomer.septet("run", "--title", "T", "--agent", "codex", "--json", cwd=shop).error
    assert (wrong["message"], wrong["remedy"]) == (typed["message"], typed["remedy"])
