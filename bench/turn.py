"""A no-op turn of each real CLI, compared with the engine's own share: supervise, follow, outcome."""

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
"""The most percent by which the sandbox may slow a turn down."""
FIRST_TOKEN_SECONDS = 0.9
"""The seconds before a real model begins even a short answer: 0.91 s is GPT-5.4's median of hourly
probes in 2026, and Claude's models take longer (https://www.jonathanwrede.de/en/blog/ttft-varies-13x-across-llm-providers/)."""
_BESIDE = "a program that prints a recorded stream"


def measure(pace: Pace) -> list[Figure]:
    """Measure the installed CLIs, in a process with only loopback if the machine allows that."""
    times = pace.times(10, 3)
    turning = [
        sys.executable,
        str(_AGENTS),
        "run",
        sys.executable,
        "-m",
        "bench.real_turns",
        str(times),
        str(FIRST_TOKEN_SECONDS),
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    told = subprocess.run(turning, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout
    turns_by_cli = json.loads(told).items()
    whole = [figure_of(cli, turns["real"], turns["printed"], turns["sandbox"]) for cli, turns in turns_by_cli]
    measured = [(cli, turns) for cli, turns in turns_by_cli if turns["real"]]
    at_once = [
        cost_of(f"{cli}, a model that answers at once", turns["real"], turns["bare"]) for cli, turns in measured
    ]
    name = f"a model that is silent for {FIRST_TOKEN_SECONDS} s first"
    paced = [cost_of(f"{cli}, {name}", turns["paced_real"], turns["paced_bare"]) for cli, turns in measured]
    return [*whole, *at_once, *paced]


def cost_of(cli: str, real: list[float], bare: list[float]) -> Figure:
    """Return the time that the sandbox adds to a CLI's turn, as a share of the same turn without it."""
    added = 1000 * median([confined - plain for confined, plain in zip(real, bare, strict=True)])
    ratios = [confined / plain for confined, plain in zip(real, bare, strict=True)]
    fastest = 100 * (min(real) / min(bare) - 1)
    note = f"p50 of {len(ratios)} pairs, {added:+.0f} ms each, one after the other; the fastest: {fastest:+.1f} %"
    return Figure(f"sandbox of {cli}", 100 * (median(ratios) - 1), "%", _MOST_PERCENT, note=note)


def figure_of(cli: str, real: list[float], printed: list[float], sandbox: str) -> Figure:
    """Return the figure of a CLI's turns with these seconds; without seconds it is not installed."""
    share = median(printed) * 1000
    if not real:
        return Figure(
            cli, None, "ms", baseline=share, beside=_BESIDE, note=f"not installed: scripts/agents install {cli}"
        )
    confined = "unconfined" if sandbox == "none" else f"in {sandbox}"
    note = f"p50 of {len(real)}, {adapter_for(cli).capabilities.tested_version}, {confined}, a model on loopback"
    return Figure(cli, median(real) * 1000, "ms", baseline=share, beside=_BESIDE, note=note)
