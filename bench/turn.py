"""One no-op turn of each real CLI, beside the engine's own share of it: supervise, follow, outcome."""

import json
import os
import subprocess
import sys

from bench.figure import Figure, median
from bench.machine import ROOT
from bench.pace import Pace
from septet.agents.clis.registry import adapter_for

_AGENTS = ROOT / "scripts" / "agents"
_BESIDE = "a program that prints a recorded stream"


def measure(pace: Pace) -> list[Figure]:
    """Measure the CLIs that are installed, in a process with nothing but loopback where the machine allows it."""
    times = pace.times(10, 3)
    turning = [sys.executable, str(_AGENTS), "run", sys.executable, "-m", "bench.real_turns", str(times)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    told = subprocess.run(turning, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout
    return [figure_of(cli, **turns) for cli, turns in json.loads(told).items()]


def figure_of(cli: str, real: list[float], printed: list[float], sandbox: str) -> Figure:
    """Return the figure of a CLI of whose turns these are the seconds; without any it is not installed."""
    share = median(printed) * 1000
    if not real:
        return Figure(
            cli, None, "ms", baseline=share, beside=_BESIDE, note=f"not installed: scripts/agents install {cli}"
        )
    confined = "unconfined" if sandbox == "none" else f"in {sandbox}"
    note = f"p50 of {len(real)}, {adapter_for(cli).capabilities.tested_version}, {confined}, a model on loopback"
    return Figure(cli, median(real) * 1000, "ms", baseline=share, beside=_BESIDE, note=note)
