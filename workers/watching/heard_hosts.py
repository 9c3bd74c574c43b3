"""Find the living hosts: a host is living if a heartbeat of its workers has changed lately."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

SILENT_AFTER: Final = 3
"""The missed heartbeats after which a worker is silent."""


@dataclass(frozen=True, slots=True)
class WorkerHeartbeat:
    """An entry of the server's list of workers; a dead worker stays in the list for minutes."""

    instance: str
    """The worker's unique key."""
    host: str
    sent_at: int
    """The time of the heartbeat by the worker's own clock, which may differ from others: only a change of the time
    counts."""
    interval_seconds: float
    """The seconds between the worker's heartbeats."""
    serves_metrics: bool = False


@dataclass(frozen=True, slots=True)
class _HeardWorker:
    heartbeat: WorkerHeartbeat
    heard_at: float


@dataclass(slots=True)
class HeardHosts:
    """The hosts that one host has heard, including the host itself. Times are monotonic seconds."""

    own: str
    interval_seconds: float
    """The seconds between heartbeats of this host's own workers."""
    _workers: dict[str, _HeardWorker] = field(default_factory=dict)
    _listening_since: float | None = None
    """The time since which the list names this host without a gap; a restarted server's list is empty for a
    while."""

    def note(self, heartbeats: Iterable[WorkerHeartbeat], now: float) -> None:
        """Record the server's present list."""
        before, self._workers = self._workers, {}
        for heartbeat in heartbeats:
            known = before.get(heartbeat.instance)
            is_new = known is None or known.heartbeat.sent_at != heartbeat.sent_at
            heard_at = now if known is None or is_new else known.heard_at
            self._workers[heartbeat.instance] = _HeardWorker(heartbeat, heard_at)
        if self.own not in self.living(now):
            self._listening_since = None
        elif self._listening_since is None:
            self._listening_since = now

    def living(self, now: float, *, with_metrics: bool = False) -> set[str]:
        """Return the hosts with a living worker, or with a living worker that serves metrics."""
        return {
            worker.heartbeat.host
            for worker in self._workers.values()
            if now - worker.heard_at < self._limit(worker.heartbeat.interval_seconds)
            and (worker.heartbeat.serves_metrics or not with_metrics)
        }

    def silent_seconds(self, host: str, now: float) -> float:
        """Return the seconds of a host's silence, as far as this host knows."""
        heard = [each.heard_at for each in self._workers.values() if each.heartbeat.host == host]
        since = max(heard, default=self._listening_since)
        return now - since if since is not None else 0.0

    def speaks(self, now: float, *, with_metrics: bool = False) -> bool:
        """Return whether this host reports: it is the first living host by name, and has listened long enough."""
        if self._listening_since is None or now - self._listening_since < self._limit(self.interval_seconds):
            return False
        return min(self.living(now, with_metrics=with_metrics), default="") == self.own

    def _limit(self, interval_seconds: float) -> float:
        return SILENT_AFTER * max(interval_seconds, self.interval_seconds)
