"""Times as every face shows them, and one that no change of the clock moves."""

import time
from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Return ISO 8601 in UTC with `Z`, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_since_boot() -> float:
    """Return how long the machine has run; of systems without that clock, what no change of the clock moves."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
