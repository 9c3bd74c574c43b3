from __future__ import annotations

import gc
import uuid

import pytest
from fakes.activities import PLAN_SHA256, Doubles, done, ended
from fakes.running import (
    KEPT,
    Handle,
    failure_of,
    refusal,
    replayed,
    result_of,
    until,
    work_order,
    worker_of,
    works_until_cancelled,
)
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, PlanDecision, RetryCall, Target
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request_watch import PullRequestWatch, WatchingHost
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.contracts.task_rows import MEMO
from septet.errors import RefusedTransitionError
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.wire.search_attributes import start_attributes
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def move(handle: Handle, to: str, who: str = "ann", why: str = "so") -> Task:
    task: Task = await handle.execute_update("move", MoveCall(to=Target(to), who=who, why=why), result_type=Task)
    return task


async def moves_of(handle: Handle) -> list[tuple[str, str, str]]:
    return [(move.who, move.came_from, move.to) for move in await handle.query(WorkOrder.history)]


def waits_for_a_decision(task: Task) -> bool:
    return (task.status, task.stage) == ("waiting", "executing")


async def test_a_collected_one_waits_without_activity_until_it_is_moved_on(
    client: Client, doubles: Doubles
) -> None:
    """A collected work order starts no activity; a move to triaged starts it, and the history names the person."""
    async with work_order(client, doubles, "histories/triaged", stage="collected") as handle:
        task = await until(handle, lambda task: bool(task.id))
        assert (task.status, task.stage) == ("pending", "collected")
        assert doubles.calls == []
        await move(handle, "blocked")
        await move(handle, "collected")
        moved = await move(handle, "triaged", why="it is next")
        assert moved.status == "pending"
        await handle.signal(WorkOrder.begin)
        assert (await result_of(handle)).status == "completed"
        assert await moves_of(handle) == [
            ("septet", "", "collected"),
            ("ann", "collected", "blocked"),
            ("ann", "blocked", "collected"),
            ("ann", "collected", "triaged"),
            ("septet", "triaged", "executing"),
            ("septet", "executing", "review"),
        ]


async def test_a_worker_that_ends_lets_go_of_what_waits(client: Client, doubles: Doubles) -> None:
    """A work order that leaves a worker's cache leaves no pending coroutine there."""
    async with work_order(client, doubles, stage="triaged") as handle:
        await until(handle, lambda task: task.stage == "triaged")
    gc.collect()  # a coroutine that awaits during its disposal fails this test
    await handle.terminate()


async def test_a_person_has_one_begin_before_its_turn(client: Client, doubles: Doubles) -> None:
    """A move to executing starts a triaged work order without the board's signal."""
    async with work_order(client, doubles, "histories/before-its-turn", stage="triaged") as handle:
        await until(handle, lambda task: task.stage == "triaged")
        assert (await move(handle, "executing")).status == "running"
        assert (await result_of(handle)).status == "completed"


async def test_a_refused_move_lists_what_is_allowed_and_leaves_no_trace(client: Client, doubles: Doubles) -> None:
    """A forbidden move and an unreadable move leave no event in the history."""
    async with work_order(client, doubles, stage="collected") as handle:
        await until(handle, lambda task: bool(task.id))
        told = await refusal(move(handle, "review"))
        assert told.endswith("cannot move to review. From here it can move to: triaged, blocked, cancelled.")
        await refusal(handle.execute_update("move", {"to": "nowhere"}))
        assert "Only a blocked or closed work order" in await refusal(
            handle.execute_update(WorkOrder.retry, RetryCall())
        )
        events = [event async for event in handle.fetch_history_events()]
        assert not [
            event for event in events if event.HasField("workflow_execution_update_accepted_event_attributes")
        ]
        await move(handle, "cancelled")


@pytest.mark.parametrize("stage", ["collected", "blocked"])
async def test_a_waiting_one_is_cancelled_by_a_move(client: Client, doubles: Doubles, stage: str) -> None:
    """A move to cancelled cancels the workflow, and its history has the person and the reason."""
    async with work_order(client, doubles, "histories/collected", stage="collected") as handle:
        await until(handle, lambda task: bool(task.id))
        if stage == "blocked":
            await move(handle, "blocked")
        task = await move(handle, "cancelled", why="not needed")
        assert (task.status, task.stage) == ("cancelled", "done")
        closed = await failure_of(handle)
        assert isinstance(closed, CancelledError)
        last = (await handle.query(WorkOrder.history))[-1]
        assert (last.who, last.why, last.to) == ("ann", "not needed", "done")
    assert doubles.calls == []


async def test_a_password_in_an_address_reaches_no_history(client: Client, doubles: Doubles) -> None:
    """The client removes the credentials from a repository's address: no record of the work order has them."""
    order = WorkOrderInput(repository="https://ada:a-password@ghe.example/o/r", title="Totals are wrong")
    orders = WorkOrders(client, doubles.task_queue)
    row = await orders.put(order)
    handle = client.get_workflow_handle(row.id)
    history = str((await handle.fetch_history()).events)
    description = await handle.describe()
    await handle.terminate()
    assert "//ghe.example/o/r" in history
    assert "a-password" not in f"{history}{description.raw_description}{row}"


async def test_a_blocked_one_ends_its_agent_keeps_its_work_and_goes_on(client: Client, doubles: Doubles) -> None:
    """A move to blocked ends the agent with a rescue and fails the work order; a move to executing continues it."""
    doubles.steps[Step.IMPLEMENT_PLAN] = [works_until_cancelled, done]
    orders = WorkOrders(client, doubles.task_queue)
    async with work_order(client, doubles) as handle:
        await wait_until(lambda: doubles.calls_of(Step.IMPLEMENT_PLAN))
        task = await move(handle, "blocked", why="the plan is old")
        assert (task.status, task.stage, task.rescues) == ("failed", "blocked", (KEPT,))
        assert task.error is not None
        assert (task.error.type, task.error.message) == ("Blocked", "ann moved it to blocked: the plan is old")
        await failure_of(handle)
        await replayed(handle, "histories/blocked")
        await OrderDecisions(orders).move(
            handle.id, MoveCall(to=Target.EXECUTING, who="bob", why="now", feedback="be brief")
        )
        assert (await result_of(handle)).status == "completed"
        assert await moves_of(handle) == [
            ("septet", "", "executing"),
            ("ann", "executing", "blocked"),
            ("bob", "blocked", "executing"),
            ("septet", "executing", "review"),
        ]
    assert doubles.calls_of(Step.IMPLEMENT_PLAN)[-1].reasons == ("A person says: be brief",)
    assert doubles.names().count("build_plan") == 1


async def test_an_executing_one_is_cancelled_by_a_move(client: Client, doubles: Doubles) -> None:
    """A move to cancelled while the agent works ends the agent with a rescue first."""
    doubles.steps[Step.IMPLEMENT_PLAN] = [works_until_cancelled]
    async with work_order(client, doubles, "histories/cancelled") as handle:
        await wait_until(lambda: doubles.calls_of(Step.IMPLEMENT_PLAN))
        task = await move(handle, "cancelled")
        assert (task.status, task.stage, task.rescues) == ("cancelled", "done", (KEPT,))


async def test_a_failed_one_is_cancelled_by_a_move(client: Client, doubles: Doubles) -> None:
    """A move to cancelled closes a failed work order again, and starts no agent."""
    doubles.steps[Step.IMPLEMENT_PLAN] = [lambda call: ended(call, Verdict.REFUSED, "no")]
    orders = WorkOrders(client, doubles.task_queue)
    async with work_order(client, doubles, "histories/given-up") as handle:
        await failure_of(handle)
        before = doubles.names()
        task = (
            await OrderDecisions(orders).move(handle.id, MoveCall(to=Target.CANCELLED, who="ann", why="let it be"))
        ).task
        assert (task.status, task.stage) == ("cancelled", "done")
        assert [name for name in doubles.names() if name != "end_work"] == before
        assert (await moves_of(handle))[-2:] == [("ann", "blocked", "executing"), ("ann", "executing", "done")]
        with pytest.raises(RefusedTransitionError) as refused:
            await OrderDecisions(orders).move(handle.id, MoveCall(to=Target.EXECUTING))
        assert "It has ended" in refused.value.remedy


async def test_a_rejected_plan_is_made_again_with_the_feedback(client: Client, doubles: Doubles) -> None:
    """A rejection needs feedback; each try of the planner gets the feedback, and the next plan waits for a decision."""
    doubles.steps[Step.BUILD_PLAN] = [done, lambda call: ended(call, Verdict.UNPROVEN, "no file"), done]
    doubles.steps[Step.FIND_PLAN_FILE] = [done, lambda call: done(call, "specs/other.md")]
    async with work_order(client, doubles, "histories/plan-approved", approve_plan=True) as handle:
        await until(handle, waits_for_a_decision)
        mute = PlanDecision(plan_sha256=PLAN_SHA256)
        assert "needs feedback" in await refusal(handle.execute_update(WorkOrder.reject_plan, mute))
        no = mute.model_copy(update={"feedback": "Too long."})
        await handle.execute_update(WorkOrder.reject_plan, no)
        again = await until(handle, lambda task: task.plan_path == "specs/other.md" and waits_for_a_decision(task))
        assert again.status == "waiting"
        await handle.execute_update(WorkOrder.approve_plan, mute)
        assert (await result_of(handle)).status == "completed"
        with pytest.raises(RefusedTransitionError, match="has ended"):
            await OrderDecisions(WorkOrders(client)).approve(handle.id, mute.plan_sha256)
    said = "a person rejected the plan: Too long."
    assert [call.reasons for call in doubles.calls_of(Step.BUILD_PLAN)] == [(), (said,), (said, "no file")]


async def test_steps_carry_their_priority(client: Client, doubles: Doubles) -> None:
    """Activities of a step carry a priority key from the score, and a fairness key with the project."""
    given = []

    def looks(call: StepCall) -> StepResult:
        given.append(activity.info().priority)
        return done(call)

    doubles.steps[Step.BUILD_PLAN] = [looks]
    async with work_order(client, doubles, priority=5, effort=1, project="app") as handle:
        await result_of(handle)
    assert [(each.priority_key, each.fairness_key, each.fairness_weight) for each in given] == [(2, "app/2", 3.0)]


def uncached(client: Client, doubles: Doubles) -> Worker:
    """Return a worker that forgets each workflow after each of its tasks, like a worker that has just started."""
    return worker_of(client, doubles, max_cached_workflows=0, max_concurrent_workflow_task_polls=1)


async def test_a_watch_takes_a_move(client: Client, doubles: Doubles) -> None:
    """A watch on a host has started no activity yet; it still takes and keeps the first move."""
    order_id = f"wo-{uuid.uuid4().hex[:8]}"
    url = "file:///origin.git/pull/1"
    task = Task(id=order_id, project="o/r", status=Status.COMPLETED, stage=Stage.REVIEW, pr_url=url)
    watcher = WatchingHost(host="host-1", control_queue="nobody-serves-this")
    async with uncached(client, doubles):
        watch = await client.start_workflow(
            PullRequestWorkflow.run,
            PullRequestWatch(task=task, forge="local", watcher=watcher),
            id=f"{order_id}/pr",
            task_queue=doubles.task_queue,
            memo={MEMO: task},
            search_attributes=start_attributes(task),
        )
        moved = await watch.execute_update(PullRequestWorkflow.move, MoveCall(to=Target.DONE, who="ann"))
        assert (moved.stage, (await watch.result()).stage) == (Stage.DONE, Stage.DONE)


async def test_a_collected_work_order_takes_a_move(client: Client, doubles: Doubles) -> None:
    """The work order waits for a person, and has started no activity yet."""
    async with uncached(client, doubles):
        orders = WorkOrders(client, doubles.task_queue)
        order = WorkOrderInput(repository="/app", title="T", stage="collected")
        task = await orders.put(order)
        reply = await OrderDecisions(orders).move(task.id, MoveCall(to=Target.CANCELLED, who="ann"))
        assert (await orders.wait(reply.task.id)).status is Status.CANCELLED
