"""Clocks that the janitor trusts, and those that it does not."""

from datetime import UTC, datetime, timedelta

import pytest

from septet.janitor.terms import distrust, is_over

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_clocks_that_agree_are_trusted() -> None:
    """A pass a few hours after the last one removes what is due."""
    assert distrust(NOW - 6 * HOUR, NOW, NOW + timedelta(seconds=3)) == ""


@pytest.mark.parametrize(
    ("last", "server", "said"),
    [
        (None, NOW, "first pass"),
        (NOW - 6 * HOUR, NOW - 400 * DAY, "the server's"),
        (NOW - 400 * DAY, NOW, "jumped"),
        (NOW + 400 * DAY, NOW, "jumped"),
    ],
)
def test_a_clock_that_jumped_makes_nothing_old(last: datetime | None, server: datetime, said: str) -> None:
    """A pass after a jump, forward or back, or beside another clock than the server's, removes nothing and says why."""
    assert said in distrust(last, NOW, server)


def test_days_are_counted_from_the_end() -> None:
    """What is kept for two days is due after two days, and not before."""
    assert is_over(NOW - 2 * DAY, 2, NOW)
    assert not is_over(NOW - 2 * DAY + timedelta(seconds=1), 2, NOW)
