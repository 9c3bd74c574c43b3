"""A work order with a session for each role, compared with a session for each step: real claude and codex."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from bench.figure import Figure, median
from bench.machine import ROOT
from bench.pace import Pace
from septet.agents.clis.registry import adapter_for

AGENTS: Final = ("claude", "codex")
_PROGRAM: Final = ROOT / "scripts" / "agents"
_BESIDE: Final = "a session for each step"
_COUNTED: Final = {
    "requests": ("requests to the model", "", 1.0),
    "sent_bytes": ("sent to it", "KB", 1000.0),
    "uncached_bytes": ("sent and not in a cache", "KB", 1000.0),
    "seconds": ("from start to end", "s", 1.0),
}
_MAY_GROW: Final = "sent_bytes"
"""The bytes of a conversation, which each request repeats; only the uncached bytes must not grow."""
_OF_ONE_PROCESS: Final = "seconds"
"""The seconds, which shrink only if a CLI serves many turns with one start."""


def measure(pace: Pace) -> list[Figure]:
    """Measure both, in a process with only loopback if the machine allows that."""
    ordering = [sys.executable, str(_PROGRAM), "run", sys.executable, "-m", "bench.session_orders"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    argv = [*ordering, str(pace.times(5, 1))]
    told = json.loads(subprocess.run(argv, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True).stdout)
    return [figure for agent in AGENTS for figure in figures_of(agent, told.get(agent, {}))]


def figures_of(agent: str, ways: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    """Return the figures of an agent; without costs it is not installed."""
    if not ways:
        return [
            Figure(f"{agent}, shared sessions", None, "", note=f"not installed: scripts/agents install {agent}")
        ]
    shared, separate = ([_with_uncached(cost) for cost in ways[way]] for way in ("shared", "separate"))
    note = f"p50 of {len(shared)}, {adapter_for(agent).capabilities.tested_version}"
    return [
        *(_figure_of(agent, key, shared, separate, note) for key in _COUNTED),
        _answers(agent, shared, separate),
    ]


def _answers(agent: str, shared: Sequence[dict[str, Any]], separate: Sequence[dict[str, Any]]) -> Figure:
    """Return the number of answers that differ from the first work order's, in both ways."""
    different = {json.dumps(cost["outputs"]) for cost in (*shared, *separate)}
    note = f"of {len(shared)} work orders with shared sessions and {len(separate)} with separate ones"
    return Figure(f"{agent}, shared sessions: other answers", len(different) - 1, "", 0.0, note=note)


def _with_uncached(cost: dict[str, Any]) -> dict[str, Any]:
    return {**cost, "uncached_bytes": cost["sent_bytes"] - cost["cached_bytes"]}


def _figure_of(
    agent: str, key: str, shared: Sequence[dict[str, Any]], separate: Sequence[dict[str, Any]], note: str
) -> Figure:
    name, unit, divisor = _COUNTED[key]
    value, baseline = (median([cost[key] for cost in costs]) / divisor for costs in (shared, separate))
    target = baseline if _has_target(agent, key) else None
    return Figure(
        f"{agent}, shared sessions: {name}", value, unit, target, baseline=baseline, beside=_BESIDE, note=note
    )


def _has_target(agent: str, key: str) -> bool:
    """Return whether shared sessions may not cost more of this than separate sessions."""
    return key != _MAY_GROW and (key != _OF_ONE_PROCESS or adapter_for(agent).capabilities.input_stream)
