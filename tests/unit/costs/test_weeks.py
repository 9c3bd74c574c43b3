"""The first week of the requested costs."""

from datetime import date

import pytest

from septet.costs.cost_book import first_week
from septet.errors import InvalidInputError

TODAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("since", "week"),
    [
        ("", ""),
        ("2026-W53", "2026-W53"),
        ("0d", "2026-W48"),
        ("4w", "2026-W44"),
        ("30d", "2026-W44"),
        ("48w", "2025-W52"),
    ],
)
def test_a_week_is_named_or_an_age_ago(since: str, week: str) -> None:
    """An age stands for the week in which it began."""
    assert first_week(since, TODAY) == week


@pytest.mark.parametrize(
    "since",
    ["2026-W00", "2026-W54", "2026-W99", "2025-W53", "0000-W01", "2026-w40", "2026-40", "4", "4m", "w", " 4w"],
)
def test_a_week_that_no_year_has_is_refused(since: str) -> None:
    """Weeks that do not exist, such as week 53 of most years, are refused."""
    with pytest.raises(InvalidInputError) as refused:
        first_week(since, TODAY)
    assert str(refused.value) == f"since {since!r} is not a week. Write it as 2026-W40, 4w or 30d."
