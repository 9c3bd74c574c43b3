"""No-op turns of the real CLIs in the engine, and of programs that only print a recorded stream.

`python -m bench.real_turns TIMES SECONDS` prints their seconds as JSON. The CLIs are those that `scripts/agents`
installed, each with its own home; the models on loopback are the tests': a model that answers at once, and a
model that first stays silent for SECONDS.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path

from fakes.model_day import MODELS, day_of
from fakes.model_stub import Model, serving

from activities.turns.turn_budget import run_turn
from bench.machine import ROOT
from bench.stage import scratch
from bench.stream import TARGETS, recording
from septet.agents.clis.adapter import Machine, Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.description import World
from septet.agents.guest.paths import NamedPath
from septet.agents.runs.folders import Runs
from septet.agents.runs.homes import Homes
from septet.agents.runs.lease import Lease
from septet.agents.runs.logins import Logins
from septet.agents.runs.records import RunKey
from septet.agents.sandbox.sandbox import Sandbox, find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.agents.turns.request import AgentRuntime, TurnRequest
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.order import Timeouts
from septet.git.engine.engine import Git
from septet.settings import Settings

AGENTS = ROOT / "scripts" / "agents"
_PROMPT = "Say that all is well, and do nothing.\n"
_LIMITS = Timeouts(wall_seconds=120, idle_seconds=60, turns=5)
_ORPHAN_SECONDS = 20.0
"""The most seconds for which an agent survives a killed bench."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The seconds of one CLI's turns."""

    real: list[float] = field(default_factory=list)
    """The turns in the sandbox; empty if the CLI is not installed."""
    bare: list[float] = field(default_factory=list)
    """The turns of the same CLI without a sandbox, each right after a turn of `real`."""
    paced_real: list[float] = field(default_factory=list)
    """As `real`, with a model that is silent first, as a thinking model is."""
    paced_bare: list[float] = field(default_factory=list)
    """As `bare`, with that model."""
    printed: list[float] = field(default_factory=list)
    """The turns of a program that prints the CLI's output: almost only the engine's share."""
    sandbox: str = "none"
    """The kind of the sandbox."""


@dataclass(slots=True)
class Bench:
    """The surroundings of turns."""

    folder: Path
    supervisors: Supervisors
    worktree: Path
    sandbox: Sandbox
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def runs(self) -> Runs:
        """Return the runs of all turns."""
        return Runs(self.folder / "runs")

    def new_order(self) -> str:
        """Return the id of a new work order."""
        return f"turn-{next(self._numbers)}"

    def seconds(self, request: TurnRequest) -> float:
        """Run one turn, and return the seconds from the request to the outcome."""
        begin = time.perf_counter()
        asyncio.run(carried_out(request))
        return time.perf_counter() - begin

    @property
    def homes(self) -> Homes:
        """Return the homes of all work orders."""
        return Homes(self.folder / "homes", Logins(self.folder / "logins"))

    def request(self, cli: str, host: Machine, order_id: str, number: int = 1) -> TurnRequest:
        """Return the request for a turn of a work order."""
        turn = Turn(_PROMPT, self.worktree, tools="read", model=MODELS.get(cli))
        return TurnRequest(
            key=RunKey(order_id, "run", str(number)),
            order_id=order_id,
            number=number,
            step="classify_issue",
            adapter=adapter_for(cli),
            turn=turn,
            limits=_LIMITS,
            runtime=AgentRuntime(
                self.runs, self.supervisors, host, _ORPHAN_SECONDS, sandbox=self.sandbox, homes=self.homes
            ),
        )


def measure_turns(times: int, first_token_seconds: float) -> dict[str, Turns]:
    """Return the seconds of this many turns by CLI, after one more turn, for the first turn in a home is slow."""
    programs = installed()
    thinking = Model({}, first_token_seconds=first_token_seconds)
    with bench_for_turns() as bench, serving(Model({})) as at_once, serving(thinking) as paced:
        return {cli: _turns(bench, cli, programs, (at_once, paced), times) for cli in TARGETS}


def _turns(bench: Bench, cli: str, programs: dict[str, str], models: tuple[str, str], times: int) -> Turns:
    home = bench.folder / cli
    home.mkdir()
    day = day_of(cli, programs, home, bench.folder)
    environ = day.environment(models[0])
    found = Settings(state_dir=bench.folder, environ=environ).agent_programs
    printing = Machine(environ, {cli: str(_printing(cli, home))}, sandboxed=True)
    printed = [bench.seconds(bench.request(cli, printing, bench.new_order())) for _ in range(times + 1)]
    turns = Turns(printed=printed[1:], sandbox=bench.sandbox.kind)
    if cli not in found:
        return turns
    measured = ((turns.real, turns.bare), (turns.paced_real, turns.paced_bare))
    for address, (real, bare) in zip(models, measured, strict=True):
        host = Machine(day.environment(address), found, sandboxed=True)
        pairs = list(_pairs(bench, cli, host, times + 1))[1:]
        real.extend(confined for confined, _ in pairs)
        bare.extend(plain for _, plain in pairs)
    return turns


def _pairs(bench: Bench, cli: str, host: Machine, times: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds of a turn in the sandbox and of a turn without it; each way has one work order.

    So a home is new for the first turn only, as in a work order of seven steps.
    """
    confined, bare = bench.new_order(), bench.new_order()
    for number in range(1, times + 1):
        without = bench.request(cli, host, bare, number)
        without = replace(without, runtime=replace(without.runtime, sandbox=Sandbox()))
        yield bench.seconds(bench.request(cli, host, confined, number)), bench.seconds(without)


async def carried_out(request: TurnRequest) -> TurnResult:
    """Run a turn and return its result."""

    async def nothing() -> None:
        """Leave the worktree as it is: no agent works in it."""

    lease = Lease.take(request.runtime.runs, request.key)
    return await run_turn(request, lease=lease, on_progress=lambda _: None, leave_work=nothing)


@contextmanager
def bench_for_turns() -> Iterator[Bench]:
    """Yield a place for turns during the block."""
    with scratch() as folder:
        worktree = folder / "worktree"
        worktree.mkdir()
        git_env = Settings(state_dir=folder).git_env
        Git(worktree / ".git", worktree, env=git_env).run("init", "--quiet")
        supervisors = Supervisors()
        supervisors.prepare()
        try:
            named = (NamedPath(ROOT), NamedPath(folder, writable=True))
            sandbox = find_sandbox("auto", git_env, World(Path(git_env["HOME"]), named))
            yield Bench(folder, supervisors, worktree, sandbox)
        finally:
            supervisors.close()


def _printing(cli: str, folder: Path) -> Path:
    """Write a program that reads its prompt and prints the CLI's output of a recorded run."""
    program = folder / "printing"
    program.write_text(f"#!/bin/sh\ncat >/dev/null\nexec cat '{recording(cli)}'\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def installed() -> dict[str, str]:
    """Return the variables that name the installed CLIs."""
    told = subprocess.run([sys.executable, str(AGENTS), "env"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in told.stdout.splitlines())


if __name__ == "__main__":
    print(
        json.dumps(
            {cli: asdict(turns) for cli, turns in measure_turns(int(sys.argv[1]), float(sys.argv[2])).items()}
        )
    )
