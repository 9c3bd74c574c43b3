"""The kills of a trial, and the durations of adoptions."""

from dataclasses import dataclass

from bench.chaos.plan import Kind


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill that hit at least one living agent."""

    kind: Kind
    at: float
    """The moment in seconds of the wall clock."""
    hits: frozenset[str]
    """The agents that it hit: its targets, or the agents of the killed worker, server or host."""
    target: str = ""
    """The agent that it was aimed at."""
    cut_short: bool = False
    """Whether the disk had no result of the target's turn at its death, whatever the agent had printed."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """The attachment of a new worker to a living agent."""

    kind: Kind
    seconds: float
    """The seconds since the worker was ready; 0 if it attached before its report."""
