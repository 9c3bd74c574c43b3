"""A usage limit that ends with the month, on a server that skips time."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from fakes.activities import Doubles, done, not_yet
from fakes.running import result_of, start, worker_of
from fakes.skipped_time import skipping_time
from temporalio.client import WorkflowHandle

from septet.contracts.names import Status, Step
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task

MONTH = timedelta(days=31)


def limited(call: StepCall) -> StepResult:
    """Fail as a step whose agent has met the limit; the retry comes after a month."""
    raise not_yet(f"The usage limit is reached at {call.step}.", "AgentApiUnavailable", MONTH)


@asynccontextmanager
async def completed(doubles: Doubles) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """Carry a work order out on a server that skips time, and yield its handle while the server runs."""
    async with await skipping_time() as environment:
        async with worker_of(environment.client, doubles):
            handle = await start(environment.client, doubles.task_queue)
            task: Task = await result_of(handle)
            assert task.status is Status.COMPLETED
            yield handle


async def test_a_step_waits_for_a_monthly_limit_and_continues_by_itself() -> None:
    """The work order stays open for the whole month, needs no person, and completes after the limit's end."""
    doubles = Doubles(f"queue-{uuid.uuid4().hex}")
    doubles.steps = {step: [limited, done] if step is Step.IMPLEMENT_PLAN else [done] for step in Step}
    async with completed(doubles) as handle:
        description = await handle.describe()
    assert description.close_time is not None
    assert description.close_time - description.start_time >= MONTH


async def test_the_server_keeps_no_timer_of_a_step_for_as_long_as_it_may_wait() -> None:
    """The server's database would keep the timer of a step's total time-out, for each step ever taken."""
    async with completed(Doubles(f"queue-{uuid.uuid4().hex}")) as handle:
        scheduled = [
            event.activity_task_scheduled_event_attributes
            async for event in handle.fetch_history_events()
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
    within = {each.activity_type.name: each.schedule_to_close_timeout.ToTimedelta() for each in scheduled}
    assert {within[name] for name in ("open_workspace", *Step)} == {timedelta()}
    assert max(within.values()) <= timedelta(days=1)
