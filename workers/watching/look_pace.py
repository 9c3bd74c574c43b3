"""How often a pull request is looked at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LookPace:
    """The pauses between looks at one pull request: as long as it was old at the last look, between these two."""

    first_seconds: float
    longest_seconds: float

    def is_over(self, since_seconds: float, age_seconds: float) -> bool:
        """Say whether it is time to look again.

        Args:
            since_seconds: How long ago the last look was.
            age_seconds: How old the pull request is by now.
        """
        age_then = age_seconds - since_seconds
        return since_seconds >= min(max(age_then, self.first_seconds), self.longest_seconds)
