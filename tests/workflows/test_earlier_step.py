"""A step after which an earlier one has to do more, as where the base was force-pushed and the work does not fit."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Replayer, Worker

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workers.connection.plugin import SeptetPlugin
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WHY = "main was force-pushed: bring both together in a.txt."
WITHIN_SECONDS = 60


def does_not_fit(call: StepCall) -> StepResult:
    """Answer that the implementor has to do more."""
    facts: dict[str, Any] = {"goes_back_to": Step.IMPLEMENT_PLAN, "checkpoint": "laid"}
    return ended(call, Verdict.UNPROVEN, WHY, **facts)


async def _run(client: Client, answers: Sequence[Callable[[StepCall], StepResult]]) -> tuple[Task, Doubles]:
    doubles = Doubles(f"queue-{uuid.uuid4().hex}", {Step.CREATE_PULL_REQUEST: answers})
    worker = Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow],
        activities=doubles.activities(),
    )
    order = {"repository": "/app", "title": "Totals are wrong"}
    async with worker:
        handle = await client.start_workflow(
            "WorkOrder", order, id=f"wo-{uuid.uuid4().hex[:8]}", task_queue=doubles.task_queue, result_type=Task
        )
        try:
            task: Task = await asyncio.wait_for(handle.result(), WITHIN_SECONDS)
        except WorkflowFailureError:
            task = await handle.query(WorkOrder.work_order)
        history = await handle.fetch_history()
    await Replayer(workflows=[WorkOrder], plugins=[SeptetPlugin()]).replay_workflow(history)
    return task, doubles


async def test_the_implementors_session_does_more_and_the_commit_is_made_again(client: Client) -> None:
    """It is told why, in its own session and from what was laid into its worktree; then the work order goes on."""
    task, doubles = await _run(client, [does_not_fit, done])
    assert task.status == "completed"
    assert doubles.names()[-5:] == [
        *("create_commit", "create_pull_request"),
        *("implement_plan", "create_commit", "create_pull_request"),
    ]
    again = doubles.calls_of(Step.IMPLEMENT_PLAN)[-1]
    assert (again.attempt, again.reasons, again.starts_from) == (1, (WHY,), "laid")
    assert again.session_id == f"session-{Step.IMPLEMENT_PLAN}"
    assert doubles.calls_of(Step.CREATE_COMMIT)[-1].session_id is None


async def test_an_earlier_step_is_asked_once(client: Client) -> None:
    """Where the work still does not fit then, the work order fails and says why."""
    task, doubles = await _run(client, [does_not_fit])
    assert (task.status, task.error is not None and WHY[:-1] in task.error.message) == ("failed", True)
    assert len(doubles.calls_of(Step.IMPLEMENT_PLAN)) == 2
    assert len(doubles.calls_of(Step.CREATE_PULL_REQUEST)) == 2
