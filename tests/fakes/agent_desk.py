"""A workspace in which a real CLI works turn by turn, with a model that answers on loopback."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.model_day import MODELS, day_of
from fakes.model_stub import Model, Part, serving

from activities.turns.turn_budget import run_turn
from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.lease import Lease
from septet.agents.runs.logins import Logins
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.sandbox import find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.agents.turns.warm import end_warm
from septet.contracts.names import SandboxChoice
from septet.contracts.order import Timeouts
from septet.git.engine.engine import Git
from septet.settings import Settings

WORK = "# implement_plan\nDo it.\n"


@dataclass
class Desk:
    cli: str
    runtime: AgentRuntime
    worktree: Path
    model: Model
    turns: int = 0

    def run_turn(self, session_id: str | None, prompt: str = WORK, *, warm: bool = False) -> TurnResult:
        self.turns += 1
        model = MODELS.get(self.cli)
        request = TurnRequest(
            key=RunKey("wo-1", "run-1", str(self.turns)),
            order_id="wo-1",
            number=self.turns,
            step="implement_plan",
            adapter=adapter_for(self.cli),
            turn=Turn(prompt, self.worktree, resume_id=session_id, model=model, warm=warm),
            limits=Timeouts(wall_seconds=120, idle_seconds=60, turns=10),
            runtime=self.runtime,
        )

        async def attempt() -> TurnResult:
            lease = Lease.take(self.runtime.runs, request.key)
            return await run_turn(request, lease=lease, on_progress=lambda _: None, leave_work=nothing)

        async def nothing() -> None:
            """Leave the worktree as it is."""

        return asyncio.run(attempt())


@contextmanager
def desk_of(
    cli: str, root: Path, home: Path, programs: Mapping[str, str], sandbox: SandboxChoice, part: Part
) -> Iterator[Desk]:
    """Yield a desk with a model, and end its processes; a sandbox gives agents a home of the work order."""
    worktree = root / "state" / "workspaces" / "wo-1"
    worktree.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    Git(worktree / ".git", worktree, env={"PATH": os.environ["PATH"]}).run("init", "--quiet")
    supervisors, model = Supervisors(), Model({"implement_plan": part})
    with serving(model) as address:
        environ = day_of(cli, programs, home, root).environment(address)
        host = Machine(environ, Settings(state_dir=root, environ=environ).agent_programs, sandboxed=True)
        world = World(home, (NamedPath(worktree, writable=True),), (root / "state",))
        homes = Homes(root / "state" / "homes", Logins(root / "state" / "logins"))
        found = find_sandbox(sandbox, environ, world)
        runtime = AgentRuntime(Runs(root / "runs"), supervisors, host, sandbox=found, homes=homes)
        yield Desk(cli, runtime, worktree, model)
        end_warm(runtime.runs, "wo-1")
        supervisors.close()
