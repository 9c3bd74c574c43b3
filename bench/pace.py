"""The amount of measuring."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """The repetitions, and the seed of random choices."""

    quick: bool = False
    seed: int = 7
    issues: int | None = None
    """The number of issues of a long pipeline; `None` for the default."""

    def times(self, thorough: int, quick: int) -> int:
        """Return the number of repetitions."""
        return quick if self.quick else thorough
