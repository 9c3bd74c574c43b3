from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.worker.v1 import WorkerHeartbeat, WorkerSlotsInfo

from workers.builds.deployment import ListedWorker

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(("age", "stops", "is_gone"), [(19, False, False), (21, False, True), (0, True, True)])
def test_a_killed_worker_counts_as_gone_after_two_heartbeats(age: int, *, stops: bool, is_gone: bool) -> None:
    """A worker that stops is gone at once, and a killed worker after two intervals."""
    heard_at, interval = NOW - timedelta(seconds=age), timedelta(seconds=10)
    last = ListedWorker("instance", "septet@host", "one", heard_at, interval, is_stopping=stops, opens=True)
    assert last.is_gone(NOW) is is_gone


@pytest.mark.parametrize(("used", "opens"), [(1, True), (0, False)])
def test_a_host_whose_slots_are_all_taken_is_not_drained(used: int, *, opens: bool) -> None:
    """A busy worker without a free slot has used slots, and a drained worker has no slots."""
    heartbeat = WorkerHeartbeat(activity_task_slots_info=WorkerSlotsInfo(current_used_slots=used))
    assert ListedWorker.of(heartbeat).opens is opens
