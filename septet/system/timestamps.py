"""Timestamps as all clients show them, and a clock that no change of the time of day moves."""

import time
from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with `Z`, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_since_boot() -> float:
    """Return the seconds since the machine's boot, or of a monotonic clock on systems without a boot clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
