"""When a usage limit ends, by the words in which CLIs and model APIs say so."""

import re
from datetime import datetime
from typing import Final

_EPOCH: Final = re.compile(r"\|(\d{10}(?:\d{3})?)\b")
"""claude with a subscription: `usage limit reached|1764151200`."""
_REGAINED: Final = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
"""Anthropic's API, where the spending that a key may have is used up."""
_TRY_AGAIN: Final = re.compile(r"try again at (?:([A-Z][a-z]{2} \d{1,2})[a-z]{2}, (\d{4}) )?(\d{1,2}:\d\d [AP]M)")
"""codex, in the machine's time zone: `7:18 AM` of the same day, `Nov 28th, 2026 7:18 AM` of another day."""


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
    return None


def _seconds(text: str, form: str) -> float | None:
    """Return a moment in seconds since the epoch; `None` where there is none such, as on 30 February."""
    try:
        return datetime.strptime(text, form).timestamp()  # noqa: DTZ007 -- without a zone it is the machine's
    except ValueError:
        return None
