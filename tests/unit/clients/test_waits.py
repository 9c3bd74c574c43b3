from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import ActivityType
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import DataConverter

from clients.executions.waits import waiting_for

AWAY = Failure(
    message="The forge is away.", application_failure_info=ApplicationFailureInfo(type="ForgeUnavailable")
)
NEXT = "again at 01:00:00 UTC)"


@pytest.mark.parametrize(
    ("pending", "reason"),
    [
        ({}, "queued since 00:30:00 UTC: all slots are busy, or no worker runs (`septet doctor`)"),
        ({"last_failure": AWAY, "attempt": 2}, f"The forge is away. (tried once, {NEXT}"),
        ({"last_failure": AWAY, "attempt": 5}, f"The forge is away. (tried 4 times, {NEXT}"),
    ],
)
async def test_a_wait_names_its_cause_and_the_next_try(pending: dict[str, Any], reason: str) -> None:
    """A wait for a slot names `septet doctor`; a wait after a failure has the failure's message and the next try."""
    activity = PendingActivityInfo(
        activity_type=ActivityType(name="build_plan"),
        state=PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED,
        scheduled_time=Timestamp(seconds=1800),
        next_attempt_schedule_time=Timestamp(seconds=3600),
        **pending,
    )
    described: Any = SimpleNamespace(
        id="wo-1",
        typed_search_attributes={},
        raw_description=SimpleNamespace(pending_activities=[activity]),
        data_converter=DataConverter.default,
    )
    assert await waiting_for(described, tells_next_try=True) == f"build_plan: {reason}"
