"""A figure: a measured value, its target, and its baseline."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Bound = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    """The measured quantity, in a few words."""
    value: float | None
    """The value; `None` without a measurement, with the reason in the note."""
    unit: str
    target: float | None = None
    """The value to reach; `None` for a figure that is only for comparison."""
    bound: Bound = "at most"
    baseline: float | None = None
    """The value of something simpler in the same run, in the same unit."""
    beside: str = ""
    """The name of the baseline."""
    note: str = ""
    """The way of measuring, if it is not obvious."""

    @property
    def passed(self) -> bool | None:
        """Return whether it reaches its target; `None` without a target or a value."""
        if self.target is None or self.value is None:
            return None
        return self.value <= self.target if self.bound == "at most" else self.value >= self.target

    @property
    def ratio(self) -> float | None:
        """Return its multiple of the baseline; `None` without a baseline or a value."""
        return self.value / self.baseline if self.baseline and self.value is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return its facts, ratio and result."""
        return {**asdict(self), "ratio": self.ratio, "passed": self.passed}


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of `values` that `percent` of them do not exceed.

    Raises:
        ValueError: `values` is empty.
    """
    if not values:
        raise ValueError("There is nothing to take a percentile of.")
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(int(rank) - 1, 0)]


def median(values: Sequence[float]) -> float:
    """Return the 50th percentile."""
    return percentile(values, 50)
