"""How much is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How often things are repeated, and where chance begins."""

    quick: bool = False
    seed: int = 7
    issues: int | None = None
    """Of a long pipeline."""

    def times(self, thorough: int, quick: int) -> int:
        """Return the number of repetitions."""
        return quick if self.quick else thorough
