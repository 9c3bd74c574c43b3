from datetime import UTC, datetime, timedelta, timezone

from septet.system.timestamps import timestamp


def test_a_time_is_utc_with_z() -> None:
    """A time of any zone becomes UTC with milliseconds and `Z`."""
    east = timezone(timedelta(hours=5, minutes=30))
    assert timestamp(datetime(2025, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)) == "2025-03-01T12:00:00.123Z"
    assert timestamp(datetime(2025, 3, 1, 2, 0, tzinfo=east)) == "2025-02-28T20:30:00.000Z"
