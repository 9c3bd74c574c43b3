"""A turn in a process that serves many turns, compared with a start for each turn: claude, and `scripted`."""

import json
import os
import subprocess
import sys

from bench.figure import Figure, median
from bench.machine import ROOT
from bench.pace import Pace
from septet.agents.clis.registry import adapter_for

_AGENTS = ROOT / "scripts" / "agents"
_BESIDE = "a start for each turn, in the same session"


def measure(pace: Pace) -> list[Figure]:
    """Measure both, in a process with only loopback if the machine allows that."""
    times = pace.times(10, 3)
    turning = [sys.executable, str(_AGENTS), "run", sys.executable, "-m", "bench.warm_turns", str(times)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    told = subprocess.run(turning, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout
    return [figure_of(agent, **turns) for agent, turns in json.loads(told).items()]


def figure_of(agent: str, started: list[float], warm: list[float], sandbox: str) -> Figure:
    """Return the figure of an agent's turns with these seconds; without seconds it is not installed."""
    name = f"{agent}, a turn in a warm process"
    if not warm:
        return Figure(name, None, "ms", note=f"not installed: scripts/agents install {agent}")
    confined = "unconfined" if sandbox == "none" else f"in {sandbox}"
    version = adapter_for(agent).capabilities.tested_version
    note = ", ".join(filter(None, (f"p50 of {len(warm)}", version, confined)))
    baseline = median(started) * 1000
    return Figure(name, median(warm) * 1000, "ms", baseline, baseline=baseline, beside=_BESIDE, note=note)
