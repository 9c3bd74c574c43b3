from datetime import UTC, datetime, timedelta

import pytest

from workers.builds.deployment import ListedWorker

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(("age", "stops", "is_gone"), [(19, False, False), (21, False, True), (0, True, True)])
def test_a_killed_worker_counts_as_gone_after_two_heartbeats(age: int, *, stops: bool, is_gone: bool) -> None:
    """A worker that stops is gone at once, and a killed worker after two intervals."""
    heard_at, interval = NOW - timedelta(seconds=age), timedelta(seconds=10)
    last = ListedWorker("instance", "septet@host", "one", heard_at, interval, is_stopping=stops, opens=True)
    assert last.is_gone(NOW) is is_gone
