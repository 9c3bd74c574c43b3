"""The real claude CLI as one process that serves many turns, with a model that answers on loopback."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fakes.agent_desk import WORK, Desk, desk_of
from fakes.agent_lab import agent_of, carriers, mark_of, supervisor_of
from fakes.model_stub import Part

pytestmark = pytest.mark.timeout(300)

WORKS = (
    "echo done > done.txt; nohup sh -c 'while :; do date >> late.txt; sleep 0.02; done' >/dev/null 2>&1 & echo ok"
)


@pytest.fixture(params=["none", "bwrap"])
def desk(request: pytest.FixtureRequest, programs: dict[str, str], homes: Path, tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk whose model starts a process that outlives its turn."""
    part = Part({"success": True}, (WORKS,))
    with desk_of("claude", tmp_path, homes / "claude", programs, request.param, part) as made:
        yield made


@pytest.fixture
def background_desk(programs: dict[str, str], tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk whose model runs a command in the background, and answers meanwhile."""
    part = Part({"success": True}, ("sleep 3; echo late > late.txt",), in_background=True)
    with desk_of("claude", tmp_path, tmp_path / "home", programs, "none", part) as made:
        yield made


def test_claude_serves_many_turns_in_one_process(desk: Desk) -> None:
    """One start serves all turns with their own figures, and the session survives a kill of the process."""
    first = desk.run_turn(None, "Say that all is well.\n", warm=True)
    session = first.outcome.session_id
    second = desk.run_turn(session, WORK, warm=True)
    assert (desk.worktree / "done.txt").exists()
    late = (desk.worktree / "late.txt").read_bytes() if (desk.worktree / "late.txt").exists() else b""
    assert psutil.Process(agent_of(first.run)).status() == psutil.STATUS_STOPPED
    third = desk.run_turn(session, "/init is no command here, but a word.\n", warm=True)
    time.sleep(0.1)
    assert ((desk.worktree / "late.txt").read_bytes() if late else b"") == late
    for carried, calls in ((first, 1), (second, 2), (third, 1)):
        usage = carried.outcome.usage
        assert (carried.outcome.ended, carried.outcome.session_id) == ("ok", session)
        assert (carried.outcome.turns, usage.input_tokens, usage.output_tokens) == (
            calls,
            1000 * calls,
            20 * calls,
        )
        assert usage.cost_usd == pytest.approx(calls * (first.outcome.usage.cost_usd or 0))
        assert agent_of(carried.run) == agent_of(first.run)
    os.kill(supervisor_of(third.run), signal.SIGKILL)
    fourth = desk.run_turn(session, "Say it once more.\n", warm=True)
    assert (fourth.outcome.ended, fourth.outcome.session_id, fourth.agent_starts) == ("ok", session, 1)
    assert agent_of(fourth.run) != agent_of(first.run)
    assert carriers(mark_of(first.run)) == []
    assert fourth.outcome.usage.cost_usd == pytest.approx(first.outcome.usage.cost_usd)


@pytest.mark.parametrize("warm", [False, True])
def test_claude_starts_nothing_in_the_background(background_desk: Desk, *, warm: bool) -> None:
    """Claude offers its model no background command, so its first result is the end."""
    done = background_desk.run_turn(None, warm=warm)
    assert done.outcome.ended == "ok"
    assert b'"task_started"' not in done.run.stdout.read_bytes()


@pytest.mark.parametrize("warm", [False, True])
def test_a_command_in_the_background_is_waited_for_where_claude_starts_one(
    background_desk: Desk, *, warm: bool
) -> None:
    """If the user's settings allow a background command, the turn ends with the second result."""
    desk, settings = background_desk, {"env": {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"}}
    folder = Path(desk.runtime.host.env["HOME"]) / ".claude"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings))
    done = desk.run_turn(None, warm=warm)
    assert (done.outcome.ended, done.agent_starts) == ("ok", 1)
    assert (desk.worktree / "late.txt").exists()
    printed = [json.loads(line) for line in done.run.stdout.read_bytes().splitlines()]
    assert [event["type"] for event in printed].count("result") == 2
    again = desk.run_turn(done.outcome.session_id, "Say that all is well.\n", warm=warm)
    assert (again.outcome.ended, again.outcome.session_id) == ("ok", done.outcome.session_id)
