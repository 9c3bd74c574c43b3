"""The real claude CLI as one process that serves many turns, with a model that answers on loopback."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from fakes.agent_lab import agent_of, carriers, mark_of, supervisor_of
from fakes.model_day import day_of
from fakes.model_stub import Model, Part, serving

from activities.turns.turn_budget import run_turn
from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.folders import Runs
from septet.agents.runs.lease import Lease
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.sandbox import find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.agents.turns.warm import end_warm
from septet.contracts.order import Timeouts
from septet.git.engine.engine import Git
from septet.settings import Settings

pytestmark = pytest.mark.timeout(300)

WORKS = (
    "echo done > done.txt; nohup sh -c 'while :; do date >> late.txt; sleep 0.02; done' >/dev/null 2>&1 & echo ok"
)


@dataclass
class Desk:
    """One workspace in which claude works turn by turn."""

    runtime: AgentRuntime
    worktree: Path
    turns: int = 0

    def run_turn(self, prompt: str, session_id: str | None, *, warm: bool = True) -> TurnResult:
        """Run one more turn."""
        self.turns += 1
        request = TurnRequest(
            key=RunKey("wo-1", "run-1", str(self.turns)),
            order_id="wo-1",
            number=self.turns,
            step="implement_plan",
            adapter=adapter_for("claude"),
            turn=Turn(prompt, self.worktree, resume_id=session_id, warm=warm),
            limits=Timeouts(wall_seconds=120, idle_seconds=60, turns=10),
            runtime=self.runtime,
        )

        async def attempt() -> TurnResult:
            lease = Lease.take(self.runtime.runs, request.key)
            return await run_turn(request, lease=lease, on_progress=lambda _: None, leave_work=nothing)

        async def nothing() -> None:
            """Leave the worktree as it is."""

        return asyncio.run(attempt())


def desk_at(root: Path, home: Path, programs: dict[str, str], sandbox: str, part: Part) -> Iterator[Desk]:
    """Yield a desk with a model; at the end stop its processes."""
    worktree = root / "worktree"
    worktree.mkdir()
    Git(worktree / ".git", worktree, env={"PATH": os.environ["PATH"]}).run("init", "--quiet")
    supervisors = Supervisors()
    with serving(Model({"implement_plan": part})) as address:
        environ = day_of("claude", programs, home, root).environment(address)
        found = Settings(state_dir=root, environ=environ).agent_programs
        host = Machine(environ, found, sandboxed=True)
        named = (NamedPath(worktree, writable=True),)
        world = find_sandbox(sandbox, environ, World(home, named))
        runtime = AgentRuntime(Runs(root / "runs"), supervisors, host, sandbox=world)
        yield Desk(runtime, worktree)
        end_warm(runtime.runs, "wo-1")
        supervisors.close()


@pytest.fixture(params=["none", "bwrap"])
def desk(request: pytest.FixtureRequest, programs: dict[str, str], homes: Path, tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk whose model starts a process that outlives its turn."""
    home = homes / "claude"
    home.mkdir(exist_ok=True)
    yield from desk_at(tmp_path, home, programs, request.param, Part({"success": True}, (WORKS,)))


@pytest.fixture
def background_desk(programs: dict[str, str], tmp_path: Path) -> Iterator[Desk]:
    """Yield a desk whose model runs a command in the background, and answers meanwhile."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    part = Part({"success": True}, ("sleep 3; echo late > late.txt",), in_background=True)
    yield from desk_at(tmp_path, home, programs, "none", part)


def test_claude_serves_many_turns_in_one_process(desk: Desk) -> None:
    """One start serves all turns with their own figures, and the session survives a kill of the process."""
    first = desk.run_turn("Say that all is well.\n", None)
    session = first.outcome.session_id
    second = desk.run_turn("# implement_plan\nDo it.\n", session)
    assert (desk.worktree / "done.txt").exists()
    late = (desk.worktree / "late.txt").read_bytes() if (desk.worktree / "late.txt").exists() else b""
    assert psutil.Process(agent_of(first.run)).status() == psutil.STATUS_STOPPED
    third = desk.run_turn("/init is no command here, but a word.\n", session)
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
    fourth = desk.run_turn("Say it once more.\n", session)
    assert (fourth.outcome.ended, fourth.outcome.session_id, fourth.agent_starts) == ("ok", session, 1)
    assert agent_of(fourth.run) != agent_of(first.run)
    assert carriers(mark_of(first.run)) == []
    assert fourth.outcome.usage.cost_usd == pytest.approx(first.outcome.usage.cost_usd)


@pytest.mark.parametrize("warm", [False, True])
def test_claude_starts_nothing_in_the_background(background_desk: Desk, *, warm: bool) -> None:
    """Claude offers its model no background command, so its first result is the end."""
    done = background_desk.run_turn("# implement_plan\nDo it.\n", None, warm=warm)
    assert done.outcome.ended == "ok"
    assert b'"task_started"' not in done.run.stdout.read_bytes()


@pytest.mark.parametrize("warm", [False, True])
def test_a_command_in_the_background_is_waited_for_where_claude_starts_one(
    background_desk: Desk, *, warm: bool
) -> None:
    """If the user's settings allow a background command, the turn ends with the second result."""
    desk, settings = background_desk, {"env": {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"}}
    (desk.worktree.parent / "home" / ".claude" / "settings.json").write_text(json.dumps(settings))
    done = desk.run_turn("# implement_plan\nDo it.\n", None, warm=warm)
    assert (done.outcome.ended, done.agent_starts) == ("ok", 1)
    assert (desk.worktree / "late.txt").exists()
    printed = [json.loads(line) for line in done.run.stdout.read_bytes().splitlines()]
    assert [event["type"] for event in printed].count("result") == 2
    again = desk.run_turn("Say that all is well.\n", done.outcome.session_id, warm=warm)
    assert (again.outcome.ended, again.outcome.session_id) == ("ok", done.outcome.session_id)
