"""How long the activities of this process have waited for room on a full disk."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from temporalio import activity

_MOST_OF_A_TRY: Final = 300.0
"""Seconds: between two failures for want of room an agent may have worked for an hour, as there was some."""


@dataclass(slots=True)
class DiskWaits:
    """How long each activity has waited. A restarted worker does not know earlier waits."""

    longest_seconds: float = 3600.0
    """The longest wait for the disk; after it, a person has to act."""
    clock: Callable[[], float] = time.monotonic
    _waits: dict[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    """By activity: how long it has waited, and when it met the full disk last."""

    def may_last(self) -> bool:
        """Note that the running activity met a full disk, and return whether it may continue to wait."""
        info, now = activity.info(), self.clock()
        key = (info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
        waited, met_at = self._waits.get(key, (0.0, now))
        waited += min(now - met_at, _MOST_OF_A_TRY)
        self._waits[key] = (waited, now)
        return waited < self.longest_seconds


DISK_WAITS: Final = DiskWaits()
"""Those of this process; its worker's settings say how long they last."""
