"""The week from which costs are asked for, as people write it."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from septet.errors import InvalidInputError

_WEEK: Final = re.compile(r"([0-9]{4})-W([0-9]{2})")
_AGE: Final = re.compile(r"([0-9]{1,4})([dw])")
_DAYS: Final = {"d": 1, "w": 7}


def first_week(since: str, today: date | None = None) -> str:
    """Return the ISO week that is meant, or in which an age such as `4w` or `30d` began; empty for all weeks.

    Args:
        since: As it was written.
        today: From when on an age counts back; by default this day, UTC.

    Raises:
        InvalidInputError: It is neither an age nor a week that its year has.
    """
    if not since:
        return ""
    if age := _AGE.fullmatch(since):
        day = (today or datetime.now(UTC).date()) - timedelta(days=int(age[1]) * _DAYS[age[2]])
        return f"{day.isocalendar().year}-W{day.isocalendar().week:02}"
    if not _is_week(since):
        raise InvalidInputError(f"since {since!r} is not a week.", remedy="Write it as 2026-W40, 4w or 30d.")
    return since


def _is_week(text: str) -> bool:
    match = _WEEK.fullmatch(text)
    if match is None:
        return False
    try:
        date.fromisocalendar(int(match[1]), int(match[2]), 1)
    except ValueError:
        return False
    return True
