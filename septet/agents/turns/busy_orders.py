"""Find work orders that may have an agent here: each of thousands of quiet ones is checked once per change."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from septet.agents.runs.folders import Runs
from septet.agents.turns.warm import is_warm

_SETTLED_NS: Final = 1_000_000_000
"""A folder that has changed so lately may change again without another time."""


@dataclass(slots=True)
class BusyOrders:
    """Those of one host.

    A lock of a work order that nobody holds is taken by one who starts an agent, and he makes a folder beside it.
    """

    runs: Runs
    _quiet: dict[str, int] = field(default_factory=dict)
    """By work order: when its folder had changed last, in nanoseconds, as nobody held a lock of it."""

    def find(self) -> list[str]:
        """Return the work orders of which somebody holds a lock: an agent, an attempt, or a process that waits."""
        busy: list[str] = []
        quiet: dict[str, int] = {}
        settled = time.time_ns() - _SETTLED_NS
        with os.scandir(self.runs.root) as entries:
            for order in (each for each in entries if each.is_dir()):
                with suppress(FileNotFoundError):  # the janitor has just removed it
                    changed = order.stat().st_mtime_ns
                    if self._quiet.get(order.name) != changed and self._is_busy(order.name):
                        busy.append(order.name)
                    elif changed < settled:
                        quiet[order.name] = changed
        self._quiet = quiet
        return sorted(busy)

    def _is_busy(self, order_id: str) -> bool:
        return self.runs.is_held(order_id) or is_warm(self.runs, order_id)
