"""A figure: what was measured, what it should be, and what it is compared with."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Bound = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    """What was measured, in a few words."""
    value: float | None
    """`None` where there was nothing to measure; the note says why."""
    unit: str
    target: float | None = None
    """What it must reach; a figure without one is there to compare with."""
    bound: Bound = "at most"
    baseline: float | None = None
    """What the same run measured of something simpler, in the same unit."""
    beside: str = ""
    """What the baseline is."""
    note: str = ""
    """How it was measured, where that is not plain."""

    @property
    def passed(self) -> bool | None:
        """Whether it reaches its target; `None` without one, or without a value."""
        if self.target is None or self.value is None:
            return None
        return self.value <= self.target if self.bound == "at most" else self.value >= self.target

    @property
    def ratio(self) -> float | None:
        """How many times the baseline it is; `None` without one, or without a value."""
        return self.value / self.baseline if self.baseline and self.value is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return its facts and what follows from them."""
        return {**asdict(self), "ratio": self.ratio, "passed": self.passed}


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of `values` that `percent` of them do not exceed.

    Raises:
        ValueError: There are none.
    """
    if not values:
        raise ValueError("There is nothing to take a percentile of.")
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(int(rank) - 1, 0)]


def median(values: Sequence[float]) -> float:
    """Return the 50th percentile."""
    return percentile(values, 50)
