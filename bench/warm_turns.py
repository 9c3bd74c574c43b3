"""Turns of one session, with a start for each turn and in one process: of the real claude and of `scripted`.

`python -m bench.warm_turns TIMES` prints their seconds as JSON. The model of claude on loopback is the tests'.
"""

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field, replace

from fakes.model_day import day_of
from fakes.model_stub import Model, serving

from bench.real_turns import Bench, bench_for_turns, carried_out, installed
from septet.agents.clis.adapter import Machine
from septet.agents.turns.warm import end_warm
from septet.settings import Settings

AGENTS = ("claude", "scripted")


@dataclass(frozen=True, slots=True)
class WarmTurns:
    """The seconds of a session's turns after its first; empty without the CLI."""

    started: list[float] = field(default_factory=list)
    """The turns with a start for each."""
    warm: list[float] = field(default_factory=list)
    """The turns in one process."""
    sandbox: str = "none"


def measure_warm_turns(times: int) -> dict[str, WarmTurns]:
    """Return the seconds of this many turns by agent; the two ways take turns, for a machine's load changes."""
    programs = installed()
    with bench_for_turns() as bench, serving(Model({})) as address:
        return {agent: _turns(bench, agent, _host(bench, agent, programs, address), times) for agent in AGENTS}


def _host(bench: Bench, agent: str, programs: dict[str, str], address: str) -> Machine | None:
    home = bench.folder / agent
    home.mkdir()
    if agent == "scripted":
        return Machine({"PATH": os.environ["PATH"], "HOME": str(home)})
    environ = day_of(agent, programs, home, bench.folder).environment(address)
    found = Settings(state_dir=bench.folder, environ=environ).agent_programs
    return Machine(environ, found, sandboxed=True) if agent in found else None


def _turns(bench: Bench, agent: str, host: Machine | None, times: int) -> WarmTurns:
    turns = WarmTurns(sandbox=bench.sandbox.kind)
    if host is None:
        return turns
    sessions: dict[bool, str | None] = {False: None, True: None}
    orders = {warm: bench.new_order() for warm in sessions}
    for number in range(1, times + 2):
        for warm, order_id in orders.items():
            request = bench.request(agent, host, order_id, number)
            request = replace(request, turn=replace(request.turn, resume_id=sessions[warm], warm=warm))
            begin = time.perf_counter()
            carried = asyncio.run(carried_out(request))
            seconds = time.perf_counter() - begin
            sessions[warm] = carried.outcome.session_id
            if number > 1:
                (turns.warm if warm else turns.started).append(seconds)
    end_warm(bench.runs, orders[True])
    return turns


if __name__ == "__main__":
    print(json.dumps({agent: asdict(turns) for agent, turns in measure_warm_turns(int(sys.argv[1])).items()}))
