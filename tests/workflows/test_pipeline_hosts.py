"""A pipeline with lanes on a lost host; the tests with real hosts are in tests/acceptance."""

from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.pipeline_line import Line, line_of, state_of, statuses, until_issue
from fakes.running import replayed
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError

from clients.temporal.hosts import give_up
from septet.contracts.lanes import Lane, LaneLeft, Role
from septet.contracts.names import Step
from septet.contracts.pipeline import PipelineCall
from septet.contracts.pipeline_view import IssueStatus, PipelineView
from septet.contracts.workspace import OpenWorkspace
from workflows.pipeline import Pipeline
from workflows.pipeline.state import PipelineState
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = PipelineCall(who="ann")


async def planned_and_paused(line: Line, *issues: str, **asked: Any) -> WorkflowHandle[Any, PipelineView]:
    """Start a pipeline, pause it, and wait until its first issue is planned and nothing else begins."""
    planning = line.hold("a", Step.BUILD_PLAN)
    handle = await line.start(*issues, **asked)
    await line.until("a:classify_issue")
    await handle.execute_update(Pipeline.pause, ANN)
    planning.set()
    await until_issue(handle, "a", IssueStatus.PLANNED)
    return handle


async def paused_with_lanes_elsewhere(line: Line) -> WorkflowHandle[Any, PipelineView]:
    """Return a pipeline with both lanes on a lost host; `b` is planned, `c` is not."""
    async with line.another_host(kept=True):
        handle = await planned_and_paused(line, "a", "b", "c")
        await handle.execute_update(Pipeline.resume, ANN)
        working = line.hold("b", Step.CLASSIFY_ISSUE)
        await until_issue(handle, "a", IssueStatus.COMPLETED)
        await handle.execute_update(Pipeline.pause, ANN)
        working.set()
        await until_issue(handle, "b", IssueStatus.PLANNED)
    return handle


async def test_one_word_on_a_dead_host_is_enough_for_all_work_orders_that_enter_its_lanes(client: Client) -> None:
    """The pipeline remembers the lost host for work orders that enter a lane later; a host without a lane is refused."""
    async with line_of(client) as line:
        moves = line.moving_here()
        handle = await paused_with_lanes_elsewhere(line)
        assert (await give_up(client, "another")).pipelines == [handle.id]
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Pipeline.host_gone, "nobody")
        await handle.execute_update(Pipeline.resume, ANN)
        assert statuses(await handle.result()) == ["completed"] * 3
        lanes = {f"{handle.id}-planner", f"{handle.id}-executor-1"}
        assert {move.workspace.place_id for move in moves} == lanes


async def test_the_word_on_a_dead_host_outlives_who_leaves_a_lane_there_with_nothing() -> None:
    """A work order that was cancelled while it waited there leaves the host lost; a finished one shows the host alive."""
    asked = OpenWorkspace(work_order_id="pl-1-a", repository="/app")
    there = Doubles("queue").workspace(asked).model_copy(update={"host": "dead"})
    lane = Lane(id="pl-1-executor-1", pipeline="pl-1", workspace=there)
    state, left = PipelineState(), LaneLeft(order_id="pl-1-a", role=Role.EXECUTOR, lane=lane)
    state.lost_hosts.add("dead")
    state.leave_lane(left)
    assert state.is_lost(lane)
    state.leave_lane(left.model_copy(update={"done_at": "after-create_pull_request"}))
    assert not state.is_lost(lane)


async def test_lanes_whose_host_is_gone_are_entered_on_another_one(client: Client) -> None:
    """Each lane moves once, when a work order enters it, with its last checkpoint; its session moves along."""
    async with line_of(client) as line:
        moves = line.moving_here()
        handle = await paused_with_lanes_elsewhere(line)
        await handle.execute_update(Pipeline.resume, ANN)
        await line.give_up(handle, "b")  # the executor's lane
        await line.give_up(handle, "c")  # the planner's lane
        assert statuses(await handle.result()) == ["completed"] * 3
        assert {(move.workspace.place_id, move.workspace.host) for move in moves} == {
            (f"{handle.id}-planner", "another"),
            (f"{handle.id}-executor-1", "another"),
        }
        assert {move.checkpoint for move in moves} == {""}
        last = line.lanes[-1]
        assert last.lane.task_queue == line.doubles.task_queue
        anew = [[issue.issue_id for issue in view.issues] for view in line.noted[-3:]]
        assert [each for each in anew if each[:2] == ["a", "b"]], anew  # the planner's present host
        sessions = {each.lane.session_id for each in line.lanes if each.lane.id == last.lane.id}
        assert len(sessions - {None}) == 1
        await replayed(handle, "pipeline/moved")
        await replayed(client.get_workflow_handle(f"{handle.id}-b"), "pipeline/member_moved")


async def test_a_lane_that_is_open_nowhere_yet_is_opened_on_any_host(client: Client) -> None:
    """The lane was meant for the planner's host; if that host is lost, the plan comes from the planner's checkpoint."""
    async with line_of(client) as line:
        moves = line.moving_here()
        async with line.another_host(kept=True):
            handle = await planned_and_paused(line, "a", "b")
        await handle.execute_update(Pipeline.resume, ANN)
        await line.give_up(handle, "a")
        await line.give_up(handle, "b")
        assert statuses(await handle.result()) == ["completed"] * 2
        assert [move.workspace.place_id for move in moves] == [f"{handle.id}-planner"]
        assert [each.plan_path for each in line.lanes if not each.lane.task_queue] == [None, "specs/plan.md"]


async def test_lanes_that_are_open_nowhere_follow_the_planner(client: Client) -> None:
    """Once the planner has moved, no lane that was never opened waits for the planner's first host."""
    async with line_of(client) as line:
        line.moving_here()
        async with line.another_host(kept=True):
            working = line.hold("a", Step.IMPLEMENT_PLAN)
            handle = await planned_and_paused(line, "a", "b", executors=2)
        await handle.execute_update(Pipeline.resume, ANN)
        await line.give_up(handle, "a")
        await line.give_up(handle, "b")
        await until_issue(handle, "b", IssueStatus.COMPLETED)
        working.set()
        assert statuses(await handle.result()) == ["completed"] * 2
        assert line.lanes[-1].lane.task_queue == line.doubles.task_queue


async def test_a_lane_whose_host_keeps_nothing_elsewhere_is_waited_for(client: Client) -> None:
    """The work order is blocked with the reason; when the host is back the work order continues by itself."""
    async with line_of(client) as line:

        async def noted() -> bool:
            return bool(line.noted)

        async with line.another_host(kept=False):
            handle = await planned_and_paused(line, "a")
            await wait_until(noted)
        await handle.execute_update(Pipeline.resume, ANN)
        await line.give_up(handle, "a")
        order = client.get_workflow_handle(f"{handle.id}-a")

        async def blocked() -> bool:
            task = await order.query(WorkOrder.work_order)
            return (task.stage, task.error and task.error.type) == ("blocked", "HostGone")

        await wait_until(blocked)
        async with line.another_host(kept=False):
            view = await handle.result()
        assert state_of(view, "a").status is IssueStatus.COMPLETED
        assert view.planner is not None
        assert view.planner.workspace is None
        waits = await _waits_of(order)
        assert waits["enter_lane"] == waits["implement_plan"]


async def _waits_of(order: WorkflowHandle[Any, Any]) -> dict[str, int]:
    """Return the total seconds that each kind of activity may wait for its host."""
    return {
        told.activity_type.name: told.schedule_to_close_timeout.seconds
        async for event in order.fetch_history_events()
        if (told := event.activity_task_scheduled_event_attributes).activity_type.name
    }
