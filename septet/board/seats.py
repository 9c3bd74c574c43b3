"""The board's seats: which of the work orders that wait may begin, best score first, under limits."""

import hashlib
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
from typing import Final

from septet.contracts.board import BoardState, HostCapacity, SeatRequest, WaitingOrders

MOST_WAITING: Final = 1_600
"""So many are remembered; with the longest ids that is 215 KB, and the server warns of payloads above 512 KB."""
_LISTED_WITHIN_SECONDS: Final = 60.0
"""The server's lists lag."""
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
    """More wait than are remembered."""
    most_waiting: int = MOST_WAITING
    """How many are remembered."""
    _late: set[str] = field(default_factory=set)
    """Those that came while more wait than are remembered, and are behind all others: some that were passed over
    may be better, so they have their turn after the next stock-taking."""
    _cut_at: float = 0.0
    """When somebody was passed over last, in seconds since the epoch."""

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
        """Take in who waits; one that asks again has no seat any more."""
        self.holders.pop(request.id, None)
        self._take_in(request)
        if self.passed_over:
            self._late.add(request.id)

    def _take_in(self, request: SeatRequest) -> None:
        self.waiting[request.id] = request.model_copy(update={"project": project_key(request.project)})

    def take_stock(self, others: WaitingOrders, now: float) -> None:
        """Take in the best of those that wait and were not known.

        Who was passed over a moment ago may not be listed yet: that nobody else waits is believed later.
        """
        for each in others.waiting:
            if each.id not in self.holders and each.id not in self.waiting:
                self._take_in(each)
        self.passed_over = not others.all or now < self._cut_at + _LISTED_WITHIN_SECONDS
        if not self.passed_over:
            self._late.clear()

    def keep_best(self, now: float) -> None:
        """Remember only those whose turn comes first."""
        if not self._late and len(self.waiting) <= self.most_waiting:
            return
        in_turn = first_in_turn(self.waiting.values(), self.project_limit, self.holders.values())
        if len(in_turn) > self.most_waiting:
            self.passed_over, self._cut_at = True, now
        self.waiting = {each.id: each for each in in_turn[: self.most_waiting]}
        self._late = set(takewhile(self._late.__contains__, reversed(self.waiting)))

    @property
    def is_low(self) -> bool:
        """Whether few are left whose turn may come before those that were passed over."""
        return self.passed_over and len(self.waiting) - len(self._late) < self.most_waiting // 2

    def leave(self, order_id: str) -> None:
        """Forget a work order: it waits no more, or its seat is free."""
        self.waiting.pop(order_id, None)
        self.holders.pop(order_id, None)
        self._late.discard(order_id)

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
            if each.id not in self._late and running.get(each.project, 0) < self.project_limit:
                running[each.project] = running.get(each.project, 0) + 1
                requests.append(each)
                if len(requests) == free:
                    break
        return requests

    def seat(self, taker: SeatRequest) -> None:
        """Give a seat to one that waits."""
        if self.waiting.pop(taker.id, None) is not None:
            self.holders[taker.id] = taker.project


def first_in_turn(
    requests: Iterable[SeatRequest], project_limit: int, running: Iterable[str] = ()
) -> list[SeatRequest]:
    """Return those that wait by when their turn may come: of each project as many at a time as may run.

    Among those of one time the best score is first. A project of many thus does not hide those of others.

    Args:
        requests: Those that wait.
        project_limit: How many of a project may run at a time.
        running: The projects of those that run.
    """
    ahead = Counter(running)
    turns: list[tuple[int, SeatRequest]] = []
    for each in sorted(requests, key=_rank):
        turns.append((ahead[each.project] // max(project_limit, 1), each))
        ahead[each.project] += 1
    return [each for _, each in sorted(turns, key=itemgetter(0))]


def _rank(each: SeatRequest) -> tuple[int, float, str]:
    return (-each.score, each.since, each.id)


def project_key(project: str) -> str:
    """Return a project by a short name, which is its own where that is short on the wire."""
    if len(json.dumps(project, ensure_ascii=False).encode()) <= _KEY_BYTES + len('""'):
        return project
    return hashlib.sha256(project.encode()).hexdigest()[:_KEY_BYTES]


_MOST_FOLLOWED: Final = 100


async def circle_of(
    order_id: str, after: Sequence[str], comes_after: Callable[[str], Awaitable[Sequence[str]]]
) -> str | None:
    """Return the circle in which a work order is, as people read it; `None` where there is none.

    Args:
        order_id: The work order.
        after: What it comes after.
        comes_after: Tells what another one comes after; at most a hundred are asked for.
    """
    ways: deque[tuple[str, ...]] = deque((other,) for other in after)
    visited = set(after)
    while ways:
        way = ways.popleft()
        if way[-1] == order_id:
            return " after ".join((order_id, *way))
        for following in await comes_after(way[-1]):
            if following not in visited and len(visited) < _MOST_FOLLOWED:
                visited.add(following)
                ways.append((*way, following))
    return None
