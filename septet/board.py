"""The messages and the state of the board, and the choice of the work orders that get a seat.

The best score comes first, within limits. The messages are short, because ten thousand work orders may wait on one
board.
"""

import hashlib
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
from typing import Final, Literal

from septet.contracts.wire import Wire

MOST_WAITING: Final = 1_600
"""The most requests that the board remembers; they take at most 215 KB, and the server warns above 512 KB."""
_LISTED_WITHIN_SECONDS: Final = 60.0
"""How many seconds a change may take to appear in the server's lists."""
_KEY_BYTES: Final = 40
"""The most bytes of a project's name that the board stores."""


def board_id(task_queue: str) -> str:
    """Return the id of the board of a queue."""
    return f"{task_queue}-board"


class SeatRequest(Wire):
    """A work order's request for a seat."""

    id: str
    project: str
    score: int
    since: float
    """The start of the wait, in seconds since the epoch."""


class HostCapacity(Wire):
    """A host's report that it serves work orders, with its limits."""

    host: str
    host_limit: int
    """The number of work orders that may run at a time for this host."""
    project_limit: int
    """The number of work orders of one project that may run at a time."""
    seconds: float
    """The seconds after which the host no longer counts, if the host sends no other report."""


class BoardState(Wire):
    """The state that the board's workflow passes to its next run."""

    waiting: tuple[tuple[str, str, int, float], ...] = ()
    """The waiting work orders, each with its id, project, score and the start of its wait."""
    holders: tuple[tuple[str, str], ...] = ()
    """The work orders that may run (have a seat), each with its id and project."""
    hosts: tuple[tuple[str, int, float], ...] = ()
    """The hosts that serve work orders, each with its id, its limit, and the time until which the host counts."""
    project_limit: int = 0
    passed_over: bool = False
    """Whether more work orders wait than the board remembers."""


class KnownOrders(Wire):
    """The work orders that the board knows already, and how many more it can add."""

    ids: tuple[str, ...] = ()
    limit: int = 0
    """The most work orders that the board can add."""
    project_limit: int = 1
    """The number of work orders of one project that may run at a time; it decides which work order runs next."""


class WaitingOrders(Wire):
    """Waiting work orders that the board does not know yet."""

    waiting: tuple[SeatRequest, ...] = ()
    all: bool = True
    """Whether `waiting` has all waiting work orders that the board does not know."""


Until = Literal["merged", "completed", "closed"]


class OthersLook(Wire):
    """A request to check whether other work orders have reached the state `until`."""

    id: str
    """The work order that waits for the other work orders."""
    after: tuple[str, ...]
    until: Until


@dataclass(slots=True)
class Seats:
    """The waiting work orders, the work orders with a seat, and the number of seats."""

    waiting: dict[str, SeatRequest] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    """For each work order with a seat, its project."""
    hosts: dict[str, tuple[int, float]] = field(default_factory=dict)
    """For each host, how many seats it adds, and until which Unix time it counts."""
    project_limit: int = 0
    passed_over: bool = False
    """Whether the board has dropped requests because too many work orders wait."""
    most_waiting: int = MOST_WAITING
    _late: set[str] = field(default_factory=set)
    """The work orders whose requests came after the board had dropped others. A dropped request may have a better
    score, so these work orders rank last until the next `take_stock`."""
    _cut_at: float = 0.0
    """When the board last dropped a request, in Unix seconds."""

    @classmethod
    def of(cls, state: BoardState) -> "Seats":
        """Return the seats as they are in the board's state."""
        return cls(
            {row[0]: SeatRequest(id=row[0], project=row[1], score=row[2], since=row[3]) for row in state.waiting},
            dict(state.holders),
            {host: (limit, until) for host, limit, until in state.hosts},
            state.project_limit,
            state.passed_over,
        )

    @property
    def state(self) -> BoardState:
        """The state for the next run of the board's workflow."""
        return BoardState(
            waiting=tuple((each.id, each.project, each.score, each.since) for each in self.waiting.values()),
            holders=tuple(self.holders.items()),
            hosts=tuple((host, limit, until) for host, (limit, until) in self.hosts.items()),
            project_limit=self.project_limit,
            passed_over=self.passed_over,
        )

    def wait(self, request: SeatRequest) -> None:
        """Record a work order's request for a seat; if the work order has a seat, it loses the seat."""
        self.holders.pop(request.id, None)
        self._take_in(request)
        if self.passed_over:
            self._late.add(request.id)

    def _take_in(self, request: SeatRequest) -> None:
        self.waiting[request.id] = request.model_copy(update={"project": project_key(request.project)})

    def take_stock(self, others: WaitingOrders, now: float) -> None:
        """Add the work orders in `others`, a list from the server, that the board does not know yet.

        The server's list lags: a work order whose request the board has just dropped may be missing. So the
        board trusts that a list is complete only a minute after the last drop.
        """
        for each in others.waiting:
            if each.id not in self.holders and each.id not in self.waiting:
                self._take_in(each)
        self.passed_over = not others.all or now < self._cut_at + _LISTED_WITHIN_SECONDS
        if not self.passed_over:
            self._late.clear()

    def keep_best(self, now: float) -> None:
        """Keep the best `most_waiting` requests, and drop all others."""
        if not self._late and len(self.waiting) <= self.most_waiting:
            return
        in_turn = first_in_turn(self.waiting.values(), self.project_limit, self.holders.values())
        if len(in_turn) > self.most_waiting:
            self.passed_over, self._cut_at = True, now
        self.waiting = {each.id: each for each in in_turn[: self.most_waiting]}
        self._late = set(takewhile(self._late.__contains__, reversed(self.waiting)))

    @property
    def is_low(self) -> bool:
        """Whether requests were dropped and few earlier requests wait: the board then needs the server's list."""
        return self.passed_over and len(self.waiting) - len(self._late) < self.most_waiting // 2

    def leave(self, order_id: str) -> None:
        """Forget a work order that no longer waits or no longer needs its seat."""
        self.waiting.pop(order_id, None)
        self.holders.pop(order_id, None)
        self._late.discard(order_id)

    def hear(self, capacity: HostCapacity, now: float) -> None:
        """Record how many work orders a host can run; forget hosts whose last report is too old."""
        self.project_limit = capacity.project_limit
        self.hosts[capacity.host] = (capacity.host_limit, now + capacity.seconds)
        self.hosts = {host: kept for host, kept in self.hosts.items() if kept[1] > now}

    def places(self, now: float) -> int:
        """Return how many work orders may have a seat at a time."""
        return sum(limit for limit, until in self.hosts.values() if until > now)

    def due(self, now: float) -> list[SeatRequest]:
        """Return the requests that get a free seat now: the best scores first, then the longest waits."""
        free = self.places(now) - len(self.holders)
        if free <= 0:
            return []
        running = Counter(self.holders.values())
        requests: list[SeatRequest] = []
        for each in sorted(self.waiting.values(), key=_rank):
            if each.id not in self._late and running[each.project] < self.project_limit:
                running[each.project] += 1
                requests.append(each)
                if len(requests) == free:
                    break
        return requests

    def seat(self, taker: SeatRequest) -> None:
        """Give a seat to a waiting work order."""
        if self.waiting.pop(taker.id, None) is not None:
            self.holders[taker.id] = taker.project


def first_in_turn(
    requests: Iterable[SeatRequest], project_limit: int, running: Iterable[str] = ()
) -> list[SeatRequest]:
    """Return the requests in the order in which they get seats, so that each project has its turn.

    The result consists of groups. In each group, each project has at most `project_limit` requests, the best
    scores first. `running` has the project of each running work order; running work orders take places in the
    first groups. A project with many requests thus displaces no other.
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
    """Return a project's name, or a digest if the name is too long for the board."""
    if len(json.dumps(project, ensure_ascii=False).encode()) <= _KEY_BYTES + len('""'):
        return project
    return hashlib.sha256(project.encode()).hexdigest()[:_KEY_BYTES]


_MOST_FOLLOWED: Final = 100


async def circle_of(
    order_id: str, after: Sequence[str], comes_after: Callable[[str], Awaitable[Sequence[str]]]
) -> str | None:
    """Return words for a circle in which `order_id` waits, by way of `after`, for itself; `None` without a circle.

    `comes_after` returns the work orders for which a work order waits; it is called at most a hundred times.
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
