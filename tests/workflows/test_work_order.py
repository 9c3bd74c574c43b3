from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import ORDER, failure_of, replayed, result_of, start, until, work_order, worker_of
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, CancelledError

from clients.temporal.work_orders import WorkOrders
from septet.contracts.amounts import BudgetWait
from septet.contracts.facts import Rescue, Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workflows.wire.search_attributes import PROJECT, PULL_REQUEST, REPOSITORY, start_attributes
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

STEPS = [step.value for step in Step]


async def error_of(handle: WorkflowHandle[Any, Any]) -> ApplicationError:
    error = await failure_of(handle)
    assert isinstance(error, ApplicationError)
    return error


async def test_seven_steps_run_in_their_order_and_end_in_a_pull_request(client: Client, doubles: Doubles) -> None:
    """Each of the seven steps begins at the checkpoint of the step before, the first at the fresh workspace."""
    async with work_order(client, doubles, "histories/completed", issue=1, title=None) as handle:
        task = await result_of(handle)
    assert doubles.names() == ["open_workspace", *STEPS]
    assert [row.step for row in task.steps] == STEPS
    begins = [doubles.calls_of(step)[0].starts_from for step in Step]
    assert begins == ["fresh", *(f"after-{step}" for step in STEPS[:-1])]
    assert (task.status, task.stage) == ("completed", "review")
    assert task.pr_url == "file:///origin.git/pull/1"
    assert (task.issue_class, task.plan_path, task.branch_name, task.commit_sha) == (
        "/bug", "specs/plan.md", "bug-issue-1-wo-1-fix", "c0ffee",
    )  # fmt: skip


async def test_the_finalizer_asks_twice_and_then_the_step_runs_once_more(client: Client, doubles: Doubles) -> None:
    """Two finalizers ask the same session; then the step runs once more with the reason, and the task lists the rescue."""
    rescue = Rescue(snapshot="wo/0001-rescue", reason="no answer")
    doubles.steps[Step.IMPLEMENT_PLAN] = [lambda call: ended(call, Verdict.UNPARSED, "prose"), done]
    doubles.finalizer = [
        lambda asked: ended(asked.call, Verdict.UNPARSED, "prose again"),
        lambda asked: ended(asked.call, Verdict.UNPARSED, "and again", rescues=(rescue,)),
    ]
    async with work_order(client, doubles, "histories/finalizer-exhausted") as handle:
        task = await result_of(handle)
    first, second = doubles.calls_of(Step.IMPLEMENT_PLAN)
    assert (first.attempt, second.attempt, second.reasons) == (1, 2, ("and again",))
    asked = next(call for name, call in doubles.calls if name == "finalize_json")
    assert (asked.session_id, asked.reasons, asked.attempt) == ("session", ("prose",), 1)
    assert (task.status, task.rescues) == ("completed", (rescue,))
    assert next(row for row in task.steps if row.step == "implement_plan").attempts == 2


@pytest.mark.parametrize("verdict", [Verdict.UNPROVEN, Verdict.REFUSED])
async def test_a_step_that_fails_twice_fails_the_work_order_with_its_words(
    client: Client, doubles: Doubles, verdict: Verdict
) -> None:
    """A step that is not done and not unparsed runs once more, and then fails the work order with the reason."""
    doubles.steps[Step.IMPLEMENT_PLAN] = [lambda call: ended(call, verdict, "nothing changed")]
    async with work_order(client, doubles, "histories/refused") as handle:
        error = await error_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert error.type == "StepFailed"
    assert "implement_plan failed: nothing changed" in error.message
    assert len(doubles.calls_of(Step.IMPLEMENT_PLAN)) == 2
    assert (task.status, task.stage) == ("failed", "blocked")
    assert Task.model_validate(error.details[0], strict=False) == task


async def test_a_missing_plan_is_planned_once_more(client: Client, doubles: Doubles) -> None:
    """`0` from the plan finder sends the work order back to the plan once."""
    doubles.steps[Step.FIND_PLAN_FILE] = [lambda call: done(call, "0"), done]
    async with work_order(client, doubles, "histories/second-plan") as handle:
        task = await result_of(handle)
    assert doubles.names()[2:6] == ["build_plan", "find_plan_file", "build_plan", "find_plan_file"]
    assert task.plan_path == "specs/plan.md"


async def test_a_plan_that_stays_missing_fails_the_work_order(client: Client, doubles: Doubles) -> None:
    """`0` twice fails the work order at its plan."""
    doubles.steps[Step.FIND_PLAN_FILE] = [lambda call: done(call, "0")]
    async with work_order(client, doubles, "histories/no-plan") as handle:
        error = await error_of(handle)
    assert "find_plan_file failed: there is no plan file" in error.message


async def test_a_cancelled_step_that_could_not_end_its_agent_has_it_ended(
    client: Client, doubles: Doubles
) -> None:
    """If the step's worker is gone, `end_work` on the host ends the agent and returns the rescue."""

    async def gone(call: StepCall) -> StepResult:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        raise ApplicationError("The worker that ran it ended.", type="WorkerGone")

    doubles.steps[Step.BUILD_PLAN] = [gone]
    async with work_order(
        client, doubles, "histories/cancelled-without-worker", timeouts={"heartbeat_seconds": 1}
    ) as handle:
        await wait_until(lambda: doubles.calls_of(Step.BUILD_PLAN))
        await handle.cancel()
        ended_as = await failure_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert isinstance(ended_as, CancelledError)
    name, call = doubles.calls[-1]
    assert (name, call.earlier, call.activity_id) == ("end_work", None, "build_plan-1")
    assert (task.status, task.stage, task.steps[-1].step) == ("cancelled", "done", "build_plan")
    assert [rescue.snapshot for rescue in task.rescues] == ["wo/0009-rescue"]


async def test_a_cancel_in_front_of_a_budget_says_what_all_activities_of_the_step_have_used(
    client: Client, doubles: Doubles
) -> None:
    """The input of `end_work` has the use of the unread answer and of the question that a budget stopped."""
    wait = BudgetWait(scope="day", message="The budget of the day is used up.", is_spent=True)
    doubles.steps[Step.BUILD_PLAN] = [
        partial(ended, verdict=Verdict.UNPARSED, checkpoint="c", usage=Usage(input_tokens=9))
    ]
    doubles.finalizer = [
        lambda asked: asked.result.model_copy(
            update={"verdict": Verdict.OVER_BUDGET, "budget_wait": wait, "usage": Usage(input_tokens=12)}
        )
    ]
    async with work_order(client, doubles) as handle:
        await until(handle, lambda task: task.status == "waiting")
        await handle.cancel()
        await failure_of(handle)
    name, call = doubles.calls[-1]
    assert (name, call.activity_id, call.earlier.usage) == ("end_work", "", Usage(input_tokens=12))


async def test_a_cancel_that_comes_before_its_turn_is_heeded_while_the_board_is_asked(
    client: Client, doubles: Doubles
) -> None:
    """A triaged work order that was cancelled before a worker ran closes, and runs no step."""
    handle = await start(client, doubles.task_queue, stage="triaged")
    await handle.cancel()
    async with worker_of(client, doubles):
        ended_as = await failure_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert isinstance(ended_as, CancelledError)
    assert (task.status, task.stage, doubles.names()) == ("cancelled", "done", [])


async def test_a_step_that_is_done_in_spite_of_a_cancel_is_the_last_one(client: Client, doubles: Doubles) -> None:
    """A cancel that arrives as a step ends still ends the work order."""

    async def done_all_the_same(call: StepCall) -> StepResult:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        return done(call)

    doubles.steps[Step.BUILD_PLAN] = [done_all_the_same]
    async with work_order(client, doubles, timeouts={"heartbeat_seconds": 1}) as handle:
        await wait_until(lambda: doubles.calls_of(Step.BUILD_PLAN))
        await handle.cancel()
        ended_as = await failure_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert isinstance(ended_as, CancelledError)
    assert (task.status, task.stage) == ("cancelled", "done")
    assert doubles.names()[-2:] == ["build_plan", "end_work"]


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ((), "repository is missing"),
        (({**ORDER, "timeouts": {"wall_seconds": -1}},), "timeouts.wall_seconds must be more than 0"),
        (({**ORDER, "description": "x" * 70_000},), "65536 are allowed"),
        ((RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"{not json")),), "not valid JSON"),
        ((ORDER, ORDER), "2 inputs were given"),
        (({**ORDER, "follow_pr": True, "pipeline": "p-1"},), "pipeline"),
        ((None,), "the input must be a JSON object"),
    ],
)
async def test_wrong_input_fails_at_once_and_names_the_field(
    client: Client, doubles: Doubles, inputs: tuple[Any, ...], named: str
) -> None:
    """Missing, wrong, doubled or unreadable input fails the work order before an activity starts."""
    order_id = f"wo-{uuid.uuid4().hex[:8]}"
    async with worker_of(client, doubles):
        handle = await client.start_workflow("WorkOrder", args=inputs, id=order_id, task_queue=doubles.task_queue)
        error = await error_of(handle)
        await replayed(handle, "histories/invalid-input")
    assert error.type == "InvalidInput"
    assert error.non_retryable
    assert named in error.message
    assert doubles.calls == []


async def test_an_activity_that_fails_for_good_fails_the_work_order_with_its_remedy(
    client: Client, doubles: Doubles
) -> None:
    """An infrastructure error has type, message and remedy in the work order object."""
    from activities.host.failures import failure
    from septet.errors import AgentMissingError

    def missing(call: Any) -> Any:
        raise failure(AgentMissingError("claude was not found.", remedy="Install it."))

    doubles.steps[Step.CLASSIFY_ISSUE] = [missing]
    async with work_order(client, doubles, "histories/agent-missing") as handle:
        error = await error_of(handle)
        task = await handle.query(WorkOrder.work_order)
    assert error.type == "AgentMissing"
    assert task.error is not None
    assert (task.error.message, task.error.remedy) == ("classify_issue: claude was not found.", "Install it.")


@pytest.mark.parametrize(("sandbox", "told"), [("none", "without a sandbox."), ("bwrap", "")])
async def test_agents_that_run_unconfined_are_told_of(
    client: Client, doubles: Doubles, sandbox: str, told: str
) -> None:
    """The web UI and the work order object report an agent without a sandbox, and nothing of an agent in a sandbox."""
    doubles.steps[Step.BUILD_PLAN] = [lambda call: done(call, sandbox=sandbox)]
    async with work_order(client, doubles) as handle:
        task = await result_of(handle)
        details = await handle.query("__temporal_workflow_metadata")
    assert ("*Unconfined*" in str(details)) is bool(told)
    assert told in str(details)
    assert (told in task.unconfined, bool(task.unconfined)) == (True, bool(told))


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


async def test_a_work_order_that_begins_at_once_has_few_events(client: Client, doubles: Doubles) -> None:
    """A work order has at most 63 events, 48 of them of its eight activities; a timed-out workflow task counts once."""
    async with worker_of(client, doubles):
        orders = WorkOrders(client, doubles.task_queue)
        asked = WorkOrderInput(repository="/app", title="Totals are wrong", project="app", agent="double")
        handle = orders.handle((await orders.put(asked)).id)
        await result_of(handle)
        kinds = Counter([str(event.WhichOneof("attributes")) async for event in handle.fetch_history_events()])
        await client.get_workflow_handle(f"{handle.id}/pr").terminate()
    assert kinds["activity_task_scheduled_event_attributes"] == 8
    of_tasks = sum(count for kind, count in kinds.items() if kind.startswith("workflow_task_"))
    assert kinds.total() - of_tasks + 3 * kinds["workflow_task_completed_event_attributes"] <= 63


async def test_no_value_is_larger_than_the_server_takes() -> None:
    """A long address is cut: the server refuses 2 KiB, and the workflow task would fail forever."""
    for long in ("/" * 2048, "€" * 2048):
        found = start_attributes(Task(id="wo-1", repository_url=long, project=long, pr_url=long))
        for key in (REPOSITORY, PROJECT, PULL_REQUEST):
            value = found[key]
            assert long.startswith(value)
            assert 1990 < len(value.encode()) <= 2000
