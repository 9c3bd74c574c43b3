"""A step that sends work back to an earlier step, as after a force-push of the base that conflicts with the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import work_order
from fakes.waiting import wait_until
from temporalio.client import Client

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WHY = "main was force-pushed: bring both together in a.txt."


def does_not_fit(call: StepCall) -> StepResult:
    """Answer that the implementor has to continue."""
    facts: dict[str, Any] = {"goes_back_to": Step.IMPLEMENT_PLAN, "checkpoint": "laid"}
    return ended(call, Verdict.UNPROVEN, WHY, **facts)


async def _run(client: Client, doubles: Doubles, answers: Sequence[Callable[[StepCall], StepResult]]) -> Task:
    doubles.steps = {Step.CREATE_PULL_REQUEST: answers}
    async with work_order(client, doubles) as handle:
        await wait_until(handle.describe, lambda described: described.close_time)
        task: Task = await handle.query(WorkOrder.work_order)
    return task


async def test_the_implementors_session_does_more_and_the_commit_is_made_again(
    client: Client, doubles: Doubles
) -> None:
    """The implementor continues in its own session from the checkpoint, with the reason; then the later steps run again."""
    task = await _run(client, doubles, [does_not_fit, done])
    assert task.status == "completed"
    assert doubles.names()[-5:] == [
        *("create_commit", "create_pull_request"),
        *("implement_plan", "create_commit", "create_pull_request"),
    ]
    again = doubles.calls_of(Step.IMPLEMENT_PLAN)[-1]
    assert (again.attempt, again.reasons, again.starts_from) == (1, (WHY,), "laid")
    assert again.session_id == f"session-{Step.IMPLEMENT_PLAN}"
    assert doubles.calls_of(Step.CREATE_COMMIT)[-1].session_id is None


async def test_an_earlier_step_is_asked_once(client: Client, doubles: Doubles) -> None:
    """If the work still does not fit after the second attempt, the work order fails and says why."""
    task = await _run(client, doubles, [does_not_fit])
    assert (task.status, task.error is not None and WHY[:-1] in task.error.message) == ("failed", True)
    assert len(doubles.calls_of(Step.IMPLEMENT_PLAN)) == 2
    assert len(doubles.calls_of(Step.CREATE_PULL_REQUEST)) == 2
