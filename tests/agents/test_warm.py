"""The real claude CLI as one process that serves many turns, with a model that answers on loopback."""

import asyncio
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

from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.named_paths import NamedPath
from septet.agents.runs.folders import RunKey, Runs
from septet.agents.runs.lease import Lease
from septet.agents.turns.carry_out import carry_out
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.agents.turns.sandbox import find_sandbox
from septet.agents.turns.supervisors import Supervisors
from septet.agents.turns.turn_runs import TurnResult
from septet.agents.turns.warm import end_warm
from septet.contracts.limits import Timeouts
from septet.git.engine import Git
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

    def carry_out(self, prompt: str, session_id: str | None) -> TurnResult:
        """Carry one more turn out."""
        self.turns += 1
        request = TurnRequest(
            key=RunKey("wo-1", "run-1", str(self.turns)),
            order_id="wo-1",
            number=self.turns,
            step="implement_plan",
            adapter=adapter_for("claude"),
            turn=Turn(prompt, self.worktree, resume_id=session_id, warm=True),
            limits=Timeouts(wall_seconds=120, idle_seconds=60, turns=10),
            runtime=self.runtime,
        )

        async def attempt() -> TurnResult:
            lease = Lease.take(self.runtime.runs, request.key)
            return await carry_out(request, lease=lease, on_progress=lambda _: None, before_rerun=nothing)

        async def nothing() -> None:
            """Leave the worktree as it is."""

        return asyncio.run(attempt())


@pytest.fixture(params=["none", "bwrap"])
def desk(request: pytest.FixtureRequest, programs: dict[str, str], homes: Path, tmp_path: Path) -> Iterator[Desk]:
    """A desk with a model behind it; nothing is left running."""
    home = homes / "claude"
    home.mkdir(exist_ok=True)
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    Git(worktree / ".git", worktree, env={"PATH": os.environ["PATH"]}).run("init", "--quiet")
    model = Model({"implement_plan": Part({"success": True}, (WORKS,))})
    supervisors = Supervisors()
    with serving(model) as address:
        environ = day_of("claude", programs, home, tmp_path).environment(address)
        found = Settings(state_dir=tmp_path, environ=environ).agent_programs
        host = Machine(environ, found, sandboxed=True)
        named = (NamedPath(worktree, writable=True),)
        sandbox = find_sandbox(request.param, environ, World(home, named))
        runtime = AgentRuntime(Runs(tmp_path / "runs"), supervisors, host, sandbox=sandbox)
        yield Desk(runtime, worktree)
        end_warm(runtime.runs, "wo-1")
        supervisors.close()


def test_claude_serves_many_turns_in_one_process(desk: Desk) -> None:
    """Its start is paid once; figures are each turn's own; between turns nothing writes; and its session outlives it."""
    first = desk.carry_out("Say that all is well.\n", None)
    session = first.outcome.session_id
    second = desk.carry_out("# implement_plan\nDo it.\n", session)
    assert (desk.worktree / "done.txt").exists()
    late = (desk.worktree / "late.txt").read_bytes() if (desk.worktree / "late.txt").exists() else b""
    assert psutil.Process(agent_of(first.run)).status() == psutil.STATUS_STOPPED
    third = desk.carry_out("/init is no command here, but a word.\n", session)
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
    fourth = desk.carry_out("Say it once more.\n", session)
    assert (fourth.outcome.ended, fourth.outcome.session_id, fourth.agent_starts) == ("ok", session, 1)
    assert agent_of(fourth.run) != agent_of(first.run)
    assert carriers(mark_of(first.run)) == []
    assert fourth.outcome.usage.cost_usd == pytest.approx(first.outcome.usage.cost_usd)
