"""Times as every face shows them."""

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Return ISO 8601 in UTC with `Z`, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
