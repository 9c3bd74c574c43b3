"""The flatness of a series of measurements: the rise of its line, compared with the noise about the line."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SETTLED = 0.5
"""The share of the time after which a program has its lasting memory: caches, arenas, a database's free pages."""
_FEWEST = 8
_NOISE = 2.0
"""The standard deviations about the line that count as noise."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The line through the settled part of a series."""

    middle: float
    per_hour: float
    """The rise in an hour; negative for a fall."""
    rise: float
    """The rise from the first settled measurement to the last."""
    noise: float
    """Twice the standard deviation of the measurements about the line."""

    @property
    def is_flat(self) -> bool:
        """Return whether the rise is within the noise; a fall is flat."""
        return self.rise <= self.noise


def envelope_of(values: Sequence[float], each: int) -> list[float]:
    """Return for each value the least of it and of the values before it, `each` values in all."""
    return [min(values[max(end - each, 0) : end]) for end in range(1, len(values) + 1)]


def slope_of(moments: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the line through the measurements of the second half of the time.

    Args:
        moments: Rising seconds.
        values: The measurements at these moments.

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
