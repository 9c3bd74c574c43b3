"""What the hand did, and how long adoptions took."""

from dataclasses import dataclass

from bench.chaos.plan import Kind


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill that hit at least one living agent."""

    kind: Kind
    at: float
    """Seconds of the wall clock."""
    hits: frozenset[str]
    """The agents that it hit: those it aimed at, or those whose worker, server or host it took away."""
    target: str = ""
    """The one that it aimed at."""
    cut_short: bool = False
    """No result of the target's turn was on disk when it died, whatever the agent had printed."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """A new worker has attached to a living agent."""

    kind: Kind
    seconds: float
    """From the moment at which the worker was ready; 0 where it attached before it said so."""
