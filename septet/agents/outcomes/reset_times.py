"""Find the end of a usage limit in a message of a CLI or a model API."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_JUST_OVER: Final = timedelta(minutes=10)
"""The time after a named hour within which this hour still means today, and not tomorrow."""
_MILLISECONDS_FROM: Final = 1e11
"""The smallest number that counts as milliseconds: as seconds it is a time in 5138, as milliseconds in 1973."""
_PART: Final = re.compile(r"(\d+(?:\.\d+)?) ?(ms|[dhms])")
_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


_DAY: Final = r"(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?"
_CLOCK: Final = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[AaPp])[Mm]\b(?: \((?P<zone>[\w+/-]+)\))?"
_UNIT: Final = r"(?:ms|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_LENGTH: Final = rf"(?P<length>(?:\d+(?:\.\d+)? ?{_UNIT}[ ,]*(?:and )?)+)"
_DATE: Final = r"(?P<date>\d{4}-\d\d-\d\d)(?: at |T| )(?P<time>\d\d:\d\d)(?::\d\d)?(?:\.\d+)?(?P<utc>Z| UTC)?"

_MOMENTS: Final = (
    # claude with a plan, earlier: `usage limit reached|1764151200`; OpenAI's plans: `"resets_at":1788879437`
    re.compile(r"(?:\||resets_at\W{1,4})(?P<epoch>\d{10}(?:\d{3})?)\b"),
    # codex, in the machine's zone: `try again at 7:18 AM` of the same day, `try again at Nov 28th, 2026 7:18 AM`
    re.compile(rf"(?P<past>(?i:try again at)) (?:{_DAY}(?:,| at)? )?{_CLOCK}"),
    # claude: `resets Jul 11 at 12pm (Asia/Tokyo)`; copilot: `reset on April 20, 2026 at 2:00 AM`
    re.compile(rf"\b(?i:resets?)(?: at| on)? (?:{_DAY}(?:,| at)? )?{_CLOCK}"),
    # copilot: `Allowance resets June 14, 2026`, `wait until April 21, 2026`
    re.compile(rf"\b(?i:resets?|renews?|wait until)(?: on)? {_DAY}\b"),
    # Anthropic's keys: `regain access on 2026-12-01 at 00:00 UTC`; others: `reset at 2026-11-29 17:37:43`
    re.compile(rf"\b(?i:resets?|regain access|try again)(?: at| on)? {_DATE}"),
    # gemini: `reset after 3h5m12s`, `retry in 34.07s`; codex, copilot, opencode: `try again in 2 days 3 hours`
    re.compile(
        rf"\b(?:(?:try|retry)(?: again)? (?:in|after)|resets? (?:in|after)|wait(?: for)?) {_LENGTH}", re.IGNORECASE
    ),
    # Google's daily quotas name no time: they begin anew at midnight in California
    re.compile(r"(?P<daily>exhausted your daily quota|requests_per_model_per_day|RequestsPerDay)"),
)
"""The patterns of the end of a limit."""


def seconds_of(moment: float) -> float:
    """Return a time in seconds since the epoch; the CLI may have given the time in milliseconds."""
    return moment / 1000.0 if moment >= _MILLISECONDS_FROM else moment


def names_reset(words: str) -> bool:
    """Return whether a message names the end of a limit."""
    return any(pattern.search(words) for pattern in _MOMENTS)


def find_reset(words: str, said_at: float) -> float | None:
    """Return the end of a limit, in seconds since the epoch; `None` if the message does not name the end.

    `said_at` is the time of the message, in seconds since the epoch: a message may name only the hour.
    """
    match = next(filter(None, (pattern.search(words) for pattern in _MOMENTS)), None)
    if match is None:
        return None
    parts = {name: value for name, value in match.groupdict().items() if value}
    try:
        return _moment(parts, said_at)
    except (ValueError, OverflowError):  # no such time exists, as on 30 February
        return None


def _moment(parts: dict[str, str], said_at: float) -> float | None:
    if "epoch" in parts:
        return seconds_of(float(parts["epoch"]))
    if "length" in parts:
        lengths = _PART.findall(parts["length"].lower())
        return said_at + sum(float(number) * _UNITS[unit] for number, unit in lengths) if lengths else None
    if "date" in parts:
        moment = datetime.strptime(f"{parts['date']} {parts['time']}", "%Y-%m-%d %H:%M")  # noqa: DTZ007 -- see below
        return moment.replace(tzinfo=UTC if parts.get("utc", "").endswith(("Z", "UTC")) else None).timestamp()
    if "daily" in parts:
        day = datetime.fromtimestamp(said_at, _zone("America/Los_Angeles")) + timedelta(days=1)
        return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    return _next_hour(parts, datetime.fromtimestamp(said_at, _zone(parts.get("zone"))))


def _next_hour(parts: dict[str, str], start: datetime) -> float:
    """Return the next time at which the clock shows the named hour, in the named zone or else the machine's zone.

    If codex names no day, the hour is on the day of the message, even if it has passed. If a message names a day
    and no hour, the result is midnight at the beginning of the day.
    """
    day = f"{parts['month']} {parts['day']}" if "day" in parts else f"{start:%b %d}"
    clock = f"{parts.get('hour', '12')}:{parts.get('minute', '00')} {parts.get('half', 'A')}M"
    moment = datetime.strptime(f"{day} {parts.get('year', start.year)} {clock}", "%b %d %Y %I:%M %p").replace(
        tzinfo=start.tzinfo
    )
    over = _JUST_OVER if "hour" in parts else timedelta(days=1)
    if "year" in parts or moment >= start - over:
        return moment.timestamp()
    if "day" in parts:
        return moment.replace(year=moment.year + 1).timestamp()
    return moment.timestamp() if "past" in parts else (moment + timedelta(days=1)).timestamp()


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
