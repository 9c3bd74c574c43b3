"""The board's seats: which of the work orders that wait may begin, best score first, under limits."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final

from septet.contracts.board import BoardState, HostCapacity, SeatRequest

MOST_WAITING: Final = 10_000
"""So many are remembered; with the longest ids that is 1.3 MB, and a Temporal payload holds 2 MB."""
_KEY_BYTES: Final = 40
"""Of a project's name, as JSON writes it."""


@dataclass(slots=True)
class Seats:
    """Who waits, who has a seat, and how many seats there are."""

    waiting: dict[str, SeatRequest] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    """By id: the project."""
    hosts: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By id: the limit, and until when it counts, in seconds since the epoch."""
    project_limit: int = 0
    passed_over: bool = False
    """More waited than could be remembered."""

    @classmethod
    def of(cls, state: BoardState) -> "Seats":
        """Return the seats as they were."""
        return cls(
            {row[0]: SeatRequest(id=row[0], project=row[1], score=row[2], since=row[3]) for row in state.waiting},
            dict(state.holders),
            {host: (limit, until) for host, limit, until in state.hosts},
            state.project_limit,
            state.passed_over,
        )

    @property
    def state(self) -> BoardState:
        """What is to be remembered of them."""
        return BoardState(
            waiting=tuple((each.id, each.project, each.score, each.since) for each in self.waiting.values()),
            holders=tuple(self.holders.items()),
            hosts=tuple((host, limit, until) for host, (limit, until) in self.hosts.items()),
            project_limit=self.project_limit,
            passed_over=self.passed_over,
        )

    def wait(self, request: SeatRequest) -> None:
        """Take in who waits; one that asks again has no seat any more. Of too many the last is passed over."""
        self.holders.pop(request.id, None)
        self.waiting[request.id] = request.model_copy(update={"project": _key(request.project)})
        if len(self.waiting) > MOST_WAITING:
            self.passed_over = True
            del self.waiting[max(self.waiting.values(), key=_rank).id]

    def leave(self, order_id: str) -> None:
        """Forget a work order: it waits no more, or its seat is free."""
        self.waiting.pop(order_id, None)
        self.holders.pop(order_id, None)

    def hear(self, capacity: HostCapacity, now: float) -> None:
        """Take in that a host serves; forget those that were silent for too long."""
        self.project_limit = capacity.project_limit
        self.hosts[capacity.host] = (capacity.host_limit, now + capacity.seconds)
        self.hosts = {host: kept for host, kept in self.hosts.items() if kept[1] > now}

    def places(self, now: float) -> int:
        """Return how many work orders may run at a time."""
        return sum(limit for limit, until in self.hosts.values() if until > now)

    def due(self, now: float) -> list[SeatRequest]:
        """Return those that may begin now: the best score first, among equals the one that waited longest."""
        free = self.places(now) - len(self.holders)
        if free <= 0:
            return []
        running: dict[str, int] = {}
        for project in self.holders.values():
            running[project] = running.get(project, 0) + 1
        requests: list[SeatRequest] = []
        for each in sorted(self.waiting.values(), key=_rank):
            if running.get(each.project, 0) < self.project_limit:
                running[each.project] = running.get(each.project, 0) + 1
                requests.append(each)
                if len(requests) == free:
                    break
        return requests

    def seat(self, taker: SeatRequest) -> None:
        """Give a seat to one that waits."""
        if self.waiting.pop(taker.id, None) is not None:
            self.holders[taker.id] = taker.project


def _rank(each: SeatRequest) -> tuple[int, float, str]:
    return (-each.score, each.since, each.id)


def _key(project: str) -> str:
    """Return a project by a short name, which is its own where that is short on the wire."""
    if len(json.dumps(project, ensure_ascii=False).encode()) <= _KEY_BYTES + len('""'):
        return project
    return hashlib.sha256(project.encode()).hexdigest()[:_KEY_BYTES]
