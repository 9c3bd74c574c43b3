"""Blows at processes of many turns: they die at work and between turns, all else at any time."""

import json
from dataclasses import dataclass
from typing import Final

from bench.chaos.blows import Blows
from bench.chaos.journal import Life
from bench.chaos.plan import Kind

_LAST_RUNG: Final = "rerun"
"""The last rung, after which a step fails with a rescue: an agent with this reason is not killed."""


@dataclass
class WarmBlows(Blows):
    """Kills on one ground, also those that hit no working agent."""

    def _worth(self, hits: list[Life]) -> bool:
        del hits
        return True

    def _there(self, life: Life) -> bool:
        return life.pid.lives

    def _bearing(self, kind: Kind) -> list[Life]:
        """Return the last turn of each living process, at work or not, whose step survives another death."""
        last = {life.run: life for life in self.ground.journal.lives()}
        living = [life for life in last.values() if life.pid.lives]
        if kind == "tool":
            return [life for life in living if any(tool.lives for tool in life.tools[-1:])]
        if kind in {"proxy", "stall"}:
            return living
        return [life for life in living if self._bears(life)]

    def _bears(self, life: Life) -> bool:
        """Return whether the step of a workspace's newest run has a rung left, or is over."""
        runs = self.ground.state / "runs" / life.tree
        newest = max(runs.glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns, default=None)
        if newest is None or (newest.parent / "exit.json").exists():
            return True
        return bool(json.loads(newest.read_bytes())["because"] != _LAST_RUNG)
