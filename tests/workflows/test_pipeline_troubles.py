"""A pipeline at the worst moments, in its window, and on a lost host: it never hangs and reports nothing untrue."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.pipeline_line import Line, after, line_of, state_of, statuses, until_issue
from fakes.running import failure_of, until
from fakes.short_pipeline import ImpatientPipeline, NarrowPipeline, ShortPipeline
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from clients.pipelines.client import PipelineClient
from clients.temporal.hosts import give_up
from septet.contracts.lanes import Lane, LaneLeft, Role
from septet.contracts.names import Status, Step
from septet.contracts.task import TaskError
from septet.contracts.workspace import OpenWorkspace
from septet.pipelines.inputs import IssueCall, PipelineCall, PipelineInput, PipelineIssue
from septet.pipelines.views import IssueStatus, NotedIssues, PipelineRun, PipelineStatus, PipelineView
from septet.state import StateDir
from workflows.pipeline.state import PipelineState
from workflows.pipeline.workflow import Pipeline
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANN = PipelineCall(who="ann")


@pytest.mark.parametrize("word", ["stop", "skip"])
async def test_a_word_that_comes_as_a_run_only_waits_for_its_notes_counts(client: Client, word: str) -> None:
    """The next run starts no work order for an issue that was stopped or skipped while this run wrote its last note."""
    async with line_of(client, ShortPipeline) as line:
        ending = line.hold("n1", Step.CREATE_PULL_REQUEST)
        handle = await line.start("n0", "n1", "n2", after("last", "n2"))
        await until_issue(handle, "n0", IssueStatus.COMPLETED)
        await line.until("n1:create_pull_request")
        line.noting = asyncio.Event()
        ending.set()
        await until_issue(handle, "n1", IssueStatus.COMPLETED)
        if word == "stop":
            await handle.execute_update(Pipeline.stop, ANN)
        else:
            await handle.execute_update(Pipeline.skip, IssueCall(issue_id="n2", who="ann"))
        line.noting.set()
        view = await handle.result()
        assert view.status is (PipelineStatus.STOPPED if word == "stop" else PipelineStatus.COMPLETED)
        assert statuses(view) == ["completed", "completed", "skipped", "skipped"]
        assert "n2:classify_issue" not in line.events


async def test_the_next_run_is_told_of_a_stop_and_of_skips() -> None:
    """A stop or a skip that arrives while a run waits for its last handlers goes to the next run, for open issues only."""
    asked = PipelineRun(repository="/app", issues=(1, 2))
    state, following = PipelineState(), PipelineState()
    state.begin("pl-1", asked, "run-1", datetime.now(UTC))
    state.add_issues([PipelineIssue(id="1"), PipelineIssue(id="2")])
    state.end_issue(state.issues["1"], IssueStatus.SKIPPED, datetime.now(UTC), None, None)
    state.is_stopping, state.to_skip = True, {"1": "ann skipped it", "2": "ann skipped it"}
    carried = state.continued_state(NotedIssues(queue=""))
    following.begin("pl-1", asked.model_copy(update={"carried": carried}), "run-1", datetime.now(UTC))
    assert (following.is_stopping, following.to_skip) == (True, {"2": "ann skipped it"})


@pytest.mark.parametrize("word", ["stop", "cancel"])
async def test_a_word_that_comes_as_the_forge_is_asked_counts(line: Line, word: str) -> None:
    """A stop during the reading ends the pipeline as stopped, all skipped; a cancel ends it as cancelled, not failed."""
    line.reading = asyncio.Event()
    line.read = {"1": PipelineIssue(id="1", title="One")}
    handle = await line.start(1)
    await line.until("reading")
    if word == "stop":
        await handle.execute_update(Pipeline.stop, ANN)
        line.reading.set()
        view = await handle.result()
        assert (view.status, statuses(view)) == (PipelineStatus.STOPPED, ["skipped"])
        assert line.reports[-1].issues == view.issues  # no host surely has the notes: any host may have taken them
    else:
        await handle.cancel()
        failure = await failure_of(handle)
        assert isinstance(failure, CancelledError)
        assert line.reports[-1].status is PipelineStatus.CANCELLED


async def test_a_cancel_counts_whatever_it_meets(line: Line) -> None:
    """A cancel that arrives while lanes are assigned is not lost among signals."""
    line.hold("a", Step.CLASSIFY_ISSUE)
    handles = []
    for number in range(6):
        handle = await line.start("a", "b")
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.HasField("workflow_execution_signaled_event_attributes"):
                break
        await asyncio.sleep(number / 1000)  # vary the moment within the assignment
        await handle.cancel()
        handles.append(handle)
    for handle in handles:
        failure = await failure_of(handle)
        assert isinstance(failure, CancelledError)


async def test_a_cancel_that_comes_as_the_report_is_written_keeps_no_agent_alive(line: Line) -> None:
    """The lanes are closed, the report is written once, and the pipeline is completed."""
    line.writing = asyncio.Event()
    handle = await line.start("a")
    await line.until("writing")
    await handle.cancel()
    line.writing.set()
    assert statuses(await handle.result()) == ["completed"]
    assert len(line.closed) == 1
    assert len(line.reports) == 1


async def test_a_work_order_of_a_pipeline_cannot_be_moved_into_its_lane(client: Client, line: Line) -> None:
    """Only the pipeline starts its work orders: the move is refused, and the work order gets its turn."""
    working = line.hold("a", Step.CLASSIFY_ISSUE)
    handle = await line.start("a", "b")
    await line.until("a:classify_issue")
    order = client.get_workflow_handle(f"{handle.id}-b")
    with pytest.raises(WorkflowUpdateFailedError) as refusal:
        await order.execute_update("move", {"to": "executing"})
    assert "starts when its pipeline starts it" in str(refusal.value.cause)
    working.set()
    assert statuses(await handle.result()) == ["completed", "completed"]


async def test_plans_that_wait_for_another_issue_do_not_keep_it_from_being_planned(
    client: Client, line: Line
) -> None:
    """An issue that was held back gets planned although the limit of waiting plans is reached by its dependants."""
    planning = line.hold("x", Step.CLASSIFY_ISSUE)
    handle = await line.start("x", "a", after("b", "a"), after("c", "a"), plans_ahead=2)
    await line.until("x:classify_issue")
    order = client.get_workflow_handle(f"{handle.id}-a")
    await order.execute_update("move", {"to": "collected"})
    planning.set()
    await until_issue(handle, "c", IssueStatus.PLANNED)
    await until_issue(handle, "x", IssueStatus.COMPLETED)
    await order.execute_update("move", {"to": "triaged"})
    assert statuses(await handle.result()) == ["completed"] * 4


async def test_what_a_cancelled_work_order_has_done_is_told(client: Client, line: Line) -> None:
    """The pipeline's view has the cancelled work order's commit and branch, although it ended without a result."""
    line.hold("a", Step.CREATE_PULL_REQUEST)
    handle = await line.start("a", "b")
    await line.until("a:create_pull_request")
    await client.get_workflow_handle(f"{handle.id}-a").cancel()
    issue = state_of(await handle.result(), "a")
    assert issue.status is IssueStatus.CANCELLED
    assert (issue.commit_hash, issue.branch_name) == ("c0ffee", "bug-issue-1-wo-1-fix")
    assert issue.rescue is not None


async def test_the_report_is_given_what_its_host_has_not_noted(client: Client) -> None:
    """The report carries the issues that the disk refused before, and none that the disk has."""
    async with line_of(client, ShortPipeline) as line:
        line.unnoted.add("n1")
        view = await (await line.start(*[f"n{number}" for number in range(5)])).result()
        (report,) = line.reports
        assert "n1" in {issue.issue_id for issue in report.issues}
        assert "n4" not in {issue.issue_id for issue in report.issues}
        assert line.on_disk() == {issue.issue_id: issue for issue in view.issues}


async def test_a_failure_with_details_that_are_not_ours_is_told_all_the_same(line: Line) -> None:
    """The workflow task does not fail forever on unreadable details: the pipeline fails with the message."""
    line.refusal = ApplicationError("the forge is on fire", {"unknown": 1}, non_retryable=True)
    handle = await line.start(1)
    failure = await failure_of(handle)
    assert "the forge is on fire" in str(failure)


async def test_a_circle_that_no_client_has_seen_closes_it_at_once(line: Line) -> None:
    """Temporal's own command line starts a pipeline unchecked: the pipeline fails, and its failure names the circle."""
    failure = await failure_of(await line.start(after("x", "y"), after("y", "x")))
    assert "x → y → x" in str(failure)


async def test_an_issue_that_a_person_holds_back_does_not_keep_later_ones_waiting(client: Client) -> None:
    """When the other issues of its run are done, later issues begin; after a move back the issue gets its turn."""
    async with line_of(client, ShortPipeline) as line:
        planning = line.hold("n0", Step.CLASSIFY_ISSUE)
        handle = await line.start("n0", "n1", "n2", after("last", "n1"))
        await line.until("n0:classify_issue")
        order = client.get_workflow_handle(f"{handle.id}-n1")
        await order.execute_update("move", {"to": "collected"})
        planning.set()
        await until_issue(handle, "n2", IssueStatus.COMPLETED)
        assert "n1:classify_issue" not in line.events
        await order.execute_update("move", {"to": "triaged"})
        assert statuses(await handle.result()) == ["completed"] * 4


async def test_an_issue_whose_work_orders_id_is_taken_says_so(client: Client, line: Line) -> None:
    """The pipeline `a` with the issue `b-1` and the pipeline `a-b` with the issue `1` mean the same work order."""
    first = await line.start("b-1")
    await first.result()
    second: WorkflowHandle[Any, PipelineView] = await client.start_workflow(
        "Pipeline",
        {"repository": "/app", "issues": [{"id": name, "title": name, "body": ""} for name in ("1", "2")]},
        id=f"{first.id}-b",
        task_queue=line.doubles.task_queue,
        result_type=PipelineView,
    )
    view = await second.result()
    assert statuses(view) == ["failed", "completed"]
    assert view.issues[0].error == TaskError(
        type="AlreadyRunning",
        message=f"The id is taken: work order {first.id}-b-1 existed before this pipeline.",
        remedy="Put the issue into a pipeline with another id: its work order is named `<pipeline>-<issue>`.",
    )
    other = await client.get_workflow_handle(f"{first.id}-b-1").query(WorkOrder.work_order)
    assert other.status is Status.COMPLETED


async def test_a_cancel_that_nobody_carries_out_is_only_asked_for(client: Client, tmp_path: Path) -> None:
    """Without a worker, the answer and later views name the command that starts a worker."""
    pipelines = PipelineClient(client, f"queue-{uuid.uuid4().hex}", state=StateDir(tmp_path))
    issue = PipelineIssue(id="a", title="Totals", body="Do it.")
    started = (await pipelines.start(PipelineInput(repository="/app", issues=(issue,)))).pipeline
    cancelled = (await pipelines.cancel(started.id, "ann")).pipeline
    assert cancelled.status is PipelineStatus.RUNNING
    assert cancelled.stuck == (
        "The cancel is asked for, and is carried out as soon as a worker runs. "
        "No worker runs, so no further step begins. Start one: septet worker"
    )
    assert (await pipelines.show(started.id)).pipeline.stuck == cancelled.stuck
    await client.get_workflow_handle(started.id).terminate()


NAMES = [f"n{number}" for number in range(5)]


async def started(client: Client, handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the issues whose work orders were started over all runs, in order."""
    names: list[str] = []
    runs = [row async for row in client.list_workflows(f'WorkflowId="{handle.id}"')]
    for run in sorted(runs, key=lambda run: run.start_time):
        async for event in client.get_workflow_handle(handle.id, run_id=run.run_id).fetch_history_events():
            child = event.start_child_workflow_execution_initiated_event_attributes
            if child.workflow_id:
                names.append(child.workflow_id.rpartition("-")[2])
    return names


async def runs_of(client: Client, handle: WorkflowHandle[Any, Any]) -> int:
    return len([row async for row in client.list_workflows(f'WorkflowId="{handle.id}"')])


@pytest.mark.parametrize("pipeline", [NarrowPipeline, ImpatientPipeline])
async def test_others_go_on_beside_a_slow_issue(client: Client, pipeline: type[Pipeline]) -> None:
    """While one issue runs all others complete before it, in order, and the next run is not waited for without end."""
    async with line_of(client, pipeline) as line:
        slow = line.hold("n0", Step.IMPLEMENT_PLAN)
        handle = await line.start(*NAMES, executors=2)
        await until_issue(handle, NAMES[-1], IssueStatus.COMPLETED)
        view = await handle.query(Pipeline.pipeline)
        assert statuses(view) == ["executing", *["completed"] * 4]
        assert await runs_of(client, handle) == 1
        slow.set()
        assert statuses(await handle.result()) == ["completed"] * 5
        assert await started(client, handle) == NAMES
        begun = [event for event in line.events if event.endswith(":classify_issue")]
        assert begun == [f"{name}:classify_issue" for name in NAMES]


async def test_the_window_bounds_how_many_wait(client: Client) -> None:
    """While two issues are open the others have no work order; a pause also starts none."""
    async with line_of(client, NarrowPipeline) as line:
        planning = line.hold("n0", Step.CLASSIFY_ISSUE)
        handle = await line.start(*NAMES[:4])
        await line.until("n0:classify_issue")
        assert await started(client, handle) == NAMES[:2]
        await handle.execute_update(Pipeline.pause, ANN)
        planning.set()
        await until_issue(handle, "n0", IssueStatus.PLANNED)
        assert await started(client, handle) == NAMES[:2]
        await handle.execute_update(Pipeline.resume, ANN)
        assert statuses(await handle.result()) == ["completed"] * 4
        assert await started(client, handle) == NAMES[:4]


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


async def test_one_word_on_a_dead_host_is_enough_for_all_work_orders_that_enter_its_lanes(
    client: Client, line: Line
) -> None:
    """Each lane moves once with its session, as a work order enters the lane; a host without a lane is refused."""
    moves = line.moving_here()
    handle = await paused_with_lanes_elsewhere(line)
    assert (await give_up(client, "another", timedelta(seconds=5))).pipelines == [handle.id]
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update(Pipeline.host_gone, "nobody")
    await handle.execute_update(Pipeline.resume, ANN)
    assert statuses(await handle.result()) == ["completed"] * 3
    lanes = {f"{handle.id}-planner", f"{handle.id}-executor-1"}
    assert {(move.workspace.place_id, move.workspace.host, move.checkpoint) for move in moves} == {
        (lane, "another", "") for lane in lanes
    }
    assert line.lanes[-1].lane.task_queue == line.doubles.task_queue
    anew = [[issue.issue_id for issue in view.issues] for view in line.noted[-3:]]
    assert [each for each in anew if each[:2] == ["a", "b"]], anew  # the planner's present host
    sessions = {each.lane.session_id for each in line.lanes if each.lane.id == line.lanes[-1].lane.id}
    assert len(sessions - {None}) == 1


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


async def test_a_lane_that_is_open_nowhere_yet_is_opened_on_any_host(line: Line) -> None:
    """The lane was meant for the planner's host; if that host is lost, the plan comes from the planner's checkpoint."""
    moves = line.moving_here()
    async with line.another_host(kept=True):
        handle = await planned_and_paused(line, "a", "b")
    await handle.execute_update(Pipeline.resume, ANN)
    await line.give_up(handle, "a")
    await line.give_up(handle, "b")
    assert statuses(await handle.result()) == ["completed"] * 2
    assert [move.workspace.place_id for move in moves] == [f"{handle.id}-planner"]
    assert [each.plan_path for each in line.lanes if not each.lane.task_queue] == [None, "specs/plan.md"]


async def test_a_lane_whose_host_keeps_nothing_elsewhere_is_waited_for(client: Client, line: Line) -> None:
    """The work order is blocked with the reason; when the host is back the work order continues by itself."""
    async with line.another_host(kept=False):
        handle = await planned_and_paused(line, "a")
        await wait_until(lambda: line.noted)
    await handle.execute_update(Pipeline.resume, ANN)
    await line.give_up(handle, "a")
    order = client.get_workflow_handle(f"{handle.id}-a")
    task = await until(order, lambda task: task.stage == "blocked")
    assert task.error is not None
    assert task.error.type == "HostGone"
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
