"""The ids by which people name activities, as in `temporal activity pause --activity-id implement_plan-1`."""

from collections import Counter


class ActivityIds:
    """The unique ids of one workflow run's activities: `<activity>-<n>` for the n-th activity of a type."""

    def __init__(self) -> None:
        """Start at 1."""
        self._counts: Counter[str] = Counter()

    def of(self, activity: str) -> str:
        """Return the next id of a type."""
        self._counts[activity] += 1
        return f"{activity}-{self._counts[activity]}"
