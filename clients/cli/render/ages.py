"""Format ages and durations for people."""

from datetime import UTC, datetime


def span_of(seconds: float) -> str:
    """Return a duration as text, in seconds if shorter than a minute, else in minutes."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004 -- a minute


def age_of(moment: str) -> str:
    """Return the age of a moment in its largest unit; empty if the moment is not known."""
    if not moment:
        return ""
    seconds = max((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds(), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"
