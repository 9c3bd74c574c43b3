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
_MOST_PERCENT = 3.0
"""By so much a turn in the sandbox may be slower than one without."""
_BESIDE = "a program that prints a recorded stream"


def measure(pace: Pace) -> list[Figure]:
    """Measure the CLIs that are installed, in a process with nothing but loopback where the machine allows it."""
    times = pace.times(10, 3)
    turning = [sys.executable, str(_AGENTS), "run", sys.executable, "-m", "bench.real_turns", str(times)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    told = subprocess.run(turning, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout
    turns_by_cli = json.loads(told).items()
    whole = [figure_of(cli, turns["real"], turns["printed"], turns["sandbox"]) for cli, turns in turns_by_cli]
    return [*whole, *(cost_of(cli, turns["real"], turns["bare"]) for cli, turns in turns_by_cli if turns["real"])]


def cost_of(cli: str, real: list[float], bare: list[float]) -> Figure:
    """Return what the sandbox adds to a turn of a CLI, as a share of the same turn without one."""
    ratios = [confined / plain for confined, plain in zip(real, bare, strict=True)]
    fastest = 100 * (min(real) / min(bare) - 1)
    note = f"p50 of {len(ratios)} pairs, one turn right after the other; of the fastest of each {fastest:+.1f} %"
    return Figure(f"{cli} in the sandbox", 100 * (median(ratios) - 1), "%", _MOST_PERCENT, note=note)


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
