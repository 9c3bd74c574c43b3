"""Timestamps in one form for all clients, and a clock that does not change with the time of day."""

import time
from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_since_boot() -> float:
    """Return the seconds since the machine's boot, or since some fixed moment if there is no boot clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
