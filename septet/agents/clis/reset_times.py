"""When a usage limit ends, by the words in which CLIs and model APIs say so."""

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_EPOCH: Final = re.compile(r"\|(\d{10}(?:\d{3})?)\b")
"""claude with a subscription: `usage limit reached|1764151200`."""
_REGAINED: Final = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
"""Anthropic's API, where the spending that a key may have is used up."""
_TRY_AGAIN: Final = re.compile(r"try again at (?:([A-Z][a-z]{2} \d{1,2})[a-z]{2}, (\d{4}) )?(\d{1,2}:\d\d [AP]M)")
"""codex, in the machine's time zone: `7:18 AM` of the same day, `Nov 28th, 2026 7:18 AM` of another day."""


_RESETS: Final = re.compile(
    r"\bresets? (?:at )?(?:([A-Z][a-z]{2} \d{1,2})(?:,| at) )?(\d{1,2})(?::(\d\d))? ?([ap]m)\b"
    r"(?: \(([\w+/-]+)\))?"
)
"""claude with a subscription: `resets 3:45pm (Europe/Paris)`, `resets Jul 11 at 12pm (Asia/Tokyo)`."""
_IN: Final = re.compile(
    r"try again in (?=\d)(?:(\d{1,3}) days?\b)? ?(?:(\d{1,3}) hours?\b)? ?(?:(\d{1,4}) minutes?\b)?", re.IGNORECASE
)
"""Earlier releases of codex: `5 days 22 hours 11 minutes`, each part where it is not 0."""
_JUST_OVER: Final = timedelta(minutes=10)
"""An hour that has just passed was that of the message, and not that of the next day."""
_MILLISECONDS_FROM: Final = 1e11
"""Seconds reach it in the year 5138, milliseconds passed it in 1973."""


def seconds_of(moment: float) -> float:
    """Return a moment in seconds since the epoch that a CLI gives in seconds, or in milliseconds."""
    return moment / 1000.0 if moment >= _MILLISECONDS_FROM else moment


def find_reset(words: str, said_at: float) -> float | None:
    """Return when a limit ends, in seconds since the epoch; `None` where the words do not say it.

    Args:
        words: The message.
        said_at: When that was said, in seconds since the epoch: it may name the hour alone.
    """
    if match := _EPOCH.search(words):
        return seconds_of(float(match[1]))
    if match := _REGAINED.search(words):
        return _seconds(f"{match[1]} {match[2]} +0000", "%Y-%m-%d %H:%M %z")
    if match := _TRY_AGAIN.search(words):
        said = datetime.fromtimestamp(said_at)  # noqa: DTZ006 -- without a zone it is the machine's
        day, year = match[1] or f"{said:%b %d}", match[2] or f"{said:%Y}"
        return _seconds(f"{day} {year} {match[3]}", "%b %d %Y %I:%M %p")
    if match := _RESETS.search(words):
        return _next(match, said_at)
    if (match := _IN.search(words)) and any(match.groups()):
        days, hours, minutes = (int(part or 0) for part in match.groups())
        return said_at + timedelta(days=days, hours=hours, minutes=minutes).total_seconds()
    return None


def _next(match: re.Match[str], said_at: float) -> float | None:
    """Return when the hour comes next that claude names, in its zone or the machine's; `None` for no such hour."""
    said = datetime.fromtimestamp(said_at, _zone(match[5]))
    day, minute = match[1] or f"{said:%b %d}", match[3] or "00"
    try:
        named = datetime.strptime(f"{day} {said:%Y} {match[2]}:{minute} {match[4]}", "%b %d %Y %I:%M %p").replace(
            tzinfo=said.tzinfo
        )
        if named < said - _JUST_OVER:
            named = named.replace(year=named.year + 1) if match[1] else named + timedelta(days=1)
    except ValueError:
        return None
    return named.timestamp()


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _seconds(text: str, form: str) -> float | None:
    """Return a moment in seconds since the epoch; `None` where there is none such, as on 30 February."""
    try:
        return datetime.strptime(text, form).timestamp()  # noqa: DTZ007 -- without a zone it is the machine's
    except ValueError:
        return None
