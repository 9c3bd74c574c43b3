"""Commands of people reach a running activity between its heartbeats, which are rare."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from fakes.waiting import wait_until
from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import ResetActivityRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Worker
from temporalio.workflow import ActivityCancellationType

from activities.host.running_attempts import RunningAttempts, pause_between_heartbeats
from workers.recovery.attempts import AttemptsLook
from workers.worker import HEARTBEAT_THROTTLE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@workflow.defn(name="OneLongActivity", sandboxed=False)
class OneLongActivity:
    """Waits for an activity whose heartbeats are rarer than a test is long."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            "wait_for_word",
            activity_id="wait-1",
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(minutes=10),
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )

    @workflow.signal
    def nothing(self) -> None:
        """Be a state transition without meaning for the activity."""


@dataclass
class Waiting:
    """An activity that waits until it gets a command, with the commands that it got."""

    client: Client
    handle: WorkflowHandle[Any, Any]
    attempts: RunningAttempts = field(default_factory=RunningAttempts)
    heard: list[str] = field(default_factory=list)

    async def word(self) -> str:
        """Return the first command that the activity got."""
        return str((await wait_until(lambda: self.heard))[0])


@pytest_asyncio.fixture(loop_scope="session")
async def mine(client: Client) -> AsyncIterator[Waiting]:
    """Run the activity until the test ends."""
    queue = f"attempts-{uuid.uuid4().hex[:8]}"
    told: list[Waiting] = []

    @activity.defn(name="wait_for_word")
    async def wait_for_word() -> None:
        (mine,) = told
        with mine.attempts.holding() as attempt:
            try:
                while True:
                    await attempt.wait()
                    activity.heartbeat()
            except asyncio.CancelledError:
                details = activity.cancellation_details()
                assert details is not None
                words = ("cancel_requested", "paused", "reset", "not_found")
                mine.heard += [word for word in words if getattr(details, word)]
                raise

    worker = Worker(
        client,
        task_queue=queue,
        workflows=[OneLongActivity],
        activities=[wait_for_word],
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
    )
    handle = await client.start_workflow("OneLongActivity", id=queue, task_queue=queue)
    told.append(Waiting(client, handle))
    async with worker:
        await wait_until(lambda: list(told[0].attempts))
        yield told[0]
        with suppress(RPCError):  # the workflow has ended
            await handle.terminate()


async def settled(mine: Waiting) -> AttemptsLook:
    """Return a look without news: its first pass causes a heartbeat, because the earlier state is unknown."""
    look = AttemptsLook(mine.client, mine.attempts)
    assert await look.take() == 1
    await wait_until(lambda: beats(mine))
    assert await look.take() == 0
    return look


async def pending(mine: Waiting) -> Any:
    return (await mine.handle.describe()).raw_description.pending_activities[0]


async def beats(mine: Waiting) -> int:
    """Return the time of the last heartbeat by the server's clock, in nanoseconds; 0 without a heartbeat."""
    return int((await pending(mine)).last_heartbeat_time.ToNanoseconds())


async def test_a_look_at_what_nobody_spoke_of_costs_no_heartbeat(mine: Waiting) -> None:
    """A description without news causes no heartbeat."""
    look = await settled(mine)
    before = await beats(mine)
    assert [await look.take() for _ in range(5)] == [0] * 5
    assert await beats(mine) == before


async def test_what_does_not_concern_it_costs_one_heartbeat(mine: Waiting) -> None:
    """A signal to the work order is a transition too: it causes one heartbeat, and the attempt continues."""
    look = await settled(mine)
    before = await beats(mine)
    await mine.handle.signal(OneLongActivity.nothing)
    await wait_until(look.take)
    await wait_until(lambda: beats(mine), lambda last: last > before)
    await wait_until(look.take, lambda asking: asking == 0)
    assert mine.heard == []


async def test_a_reset_is_heard_at_the_next_look(client: Client, mine: Waiting) -> None:
    """A description names no reset: the look sees a transition that no heartbeat explains."""
    look = await settled(mine)
    execution = WorkflowExecution(workflow_id=mine.handle.id)
    request = ResetActivityRequest(namespace=client.namespace, execution=execution, id="wait-1")
    await client.workflow_service.reset_activity(request)
    assert await look.take() == 1
    assert await mine.word() == "reset"


async def test_a_cancel_is_heard_at_once_where_it_is_delivered(mine: Waiting) -> None:
    """On a server without pushes, the delivery of a cancel causes a heartbeat of the attempt."""
    await mine.handle.cancel()
    asked = PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
    await wait_until(lambda: pending(mine), lambda activity: activity.state == asked)
    assert mine.attempts.ask(mine.handle.id)
    assert await mine.word() == "cancel_requested"


@pytest.mark.parametrize(
    ("seconds", "pause"), [(None, 2), (1, 0.25), (5, 1.25), (30, 2), (60, 30), (120, 90), (600, 570)]
)
async def test_heartbeats_are_as_rare_as_an_outage_allows(seconds: float | None, pause: float) -> None:
    """The pauses leave time for an outage of 30 s; with a shorter time-out heartbeats are frequent."""
    given = timedelta(seconds=seconds) if seconds is not None else None
    assert pause_between_heartbeats(given) == timedelta(seconds=pause)
