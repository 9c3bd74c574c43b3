"""Whether a series of measurements is flat: what a line through it rises by, beside the noise about that line."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SETTLED = 0.5
"""The share of the time after which a program has what it keeps: caches, arenas, a database's free pages."""
_FEWEST = 8
_NOISE = 2.0
"""Standard deviations about the line."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The line through the settled part of a series."""

    middle: float
    per_hour: float
    """What it rises by in an hour; negative where it falls."""
    rise: float
    """What it rises by from its first measurement to its last."""
    noise: float
    """Twice the standard deviation of the measurements about the line."""

    @property
    def is_flat(self) -> bool:
        """Whether the rise cannot be told from the noise; what falls is flat."""
        return self.rise <= self.noise


def envelope_of(values: Sequence[float], each: int) -> list[float]:
    """Return the least of each value and those before it, so many in all: below what comes and goes meanwhile."""
    return [min(values[max(end - each, 0) : end]) for end in range(1, len(values) + 1)]


def slope_of(moments: Sequence[float], values: Sequence[float]) -> Slope:
    """Lay a line through what was measured in the second half of the time.

    Args:
        moments: Seconds, rising.
        values: What was measured then.

    Raises:
        ValueError: Fewer than eight measurements are left.
    """
    begin = moments[0] + SETTLED * (moments[-1] - moments[0]) if moments else 0.0
    settled = [(moment, value) for moment, value in zip(moments, values, strict=True) if moment >= begin]
    if len(settled) < _FEWEST:
        raise ValueError(f"{len(settled)} measurements are too few to lay a line through.")
    at, seen = zip(*settled, strict=True)
    line = statistics.linear_regression(at, seen)
    about = [value - line.slope * moment - line.intercept for moment, value in settled]
    return Slope(
        middle=statistics.fmean(seen),
        per_hour=line.slope * 3600,
        rise=line.slope * (at[-1] - at[0]),
        noise=_NOISE * statistics.pstdev(about),
    )
