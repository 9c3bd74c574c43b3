"""Timestamps in the form of all clients, and a clock that a change of the time of day does not move."""

import time
from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with `Z`, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_since_boot() -> float:
    """Return the seconds since the machine's boot, or since some fixed moment if there is no boot clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
