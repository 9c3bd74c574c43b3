"""What the board is told, and what it remembers: short values, for ten thousand work orders may wait."""

from typing import Literal

from septet.contracts.wire import Wire


def board_id(task_queue: str) -> str:
    """Return the id of the board of a queue."""
    return f"{task_queue}-board"


class SeatRequest(Wire):
    """A work order waits for its turn."""

    id: str
    project: str
    score: int
    since: float
    """Seconds since the epoch."""


class HostCapacity(Wire):
    """A host serves."""

    host: str
    host_limit: int
    """Work orders that may run at a time for this host."""
    project_limit: int
    """Work orders of one project that may run at a time."""
    seconds: float
    """After so many without another word the host counts no more."""


class BoardState(Wire):
    """What the board knows, from one of its runs to the next."""

    waiting: tuple[tuple[str, str, int, float], ...] = ()
    """Of each: id, project, score, since."""
    holders: tuple[tuple[str, str], ...] = ()
    """Of each: id, project."""
    hosts: tuple[tuple[str, int, float], ...] = ()
    """Of each: id, limit, until when it counts."""
    project_limit: int = 0
    passed_over: bool = False
    """More wait than are remembered."""


class KnownOrders(Wire):
    """Which work orders the board knows."""

    ids: tuple[str, ...] = ()
    limit: int = 0
    """The most that it can take in."""
    project_limit: int = 1
    """How many of a project may run at a time: who may have a turn first depends on it."""


class WaitingOrders(Wire):
    """What waits on the board, as its server tells."""

    waiting: tuple[SeatRequest, ...] = ()
    all: bool = True
    """Whether there are no more."""


Until = Literal["merged", "completed", "closed"]


class OthersLook(Wire):
    """Ask whether other work orders are over."""

    id: str
    """The one that waits."""
    after: tuple[str, ...]
    until: Until
