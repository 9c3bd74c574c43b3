"""The clocks that the janitor trusts."""

from datetime import UTC, datetime, timedelta

import pytest

from septet.janitor.terms import Owner, combine_owners, distrust, pipeline_of

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_clocks_that_agree_are_trusted() -> None:
    """A pass a few hours after the last pass, with the server's clock, may remove files."""
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
    """A pass after a jump of the clock, or with a clock unlike the server's, removes nothing and says why."""
    assert said in distrust(last, NOW, server)


def test_a_lane_is_over_with_its_pipeline() -> None:
    """A name that fits a work order and a lane is closed when neither runs, at the later of their ends."""
    early, late = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC)
    assert [pipeline_of(name) for name in ("pl-1-planner", "a-executor-12", "wo-1", "planner", "a-executor-0")] == [
        "pl-1", "a", None, None, None,
    ]  # fmt: skip
    assert combine_owners(Owner("unknown"), Owner("running")) == Owner("running")
    assert combine_owners(Owner("running"), Owner("closed", early)) == Owner("running")
    assert combine_owners(Owner("unknown"), Owner("closed", early)) == Owner("closed", early)
    assert combine_owners(Owner("closed", late), Owner("closed", early)) == Owner("closed", late)
    assert combine_owners(Owner("unknown"), Owner("unknown")) == Owner("unknown")
