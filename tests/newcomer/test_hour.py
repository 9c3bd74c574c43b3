"""The rest of a new user's hour: clone, demo, crash, cancel and retry."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.newcomer import BODY, TITLE, Newcomer
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
