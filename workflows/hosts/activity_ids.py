"""The ids by which people name activities, as in `temporal activity pause --activity-id implement_plan-1`."""

from collections import Counter


class ActivityIds:
    """The ids of one workflow run: `<activity>-<n>` for the n-th activity of a type, so that no two share one."""

    def __init__(self) -> None:
        """Begin at one."""
        self._counts: Counter[str] = Counter()

    def of(self, activity: str) -> str:
        """Return the next id of a type."""
        self._counts[activity] += 1
        return f"{activity}-{self._counts[activity]}"
