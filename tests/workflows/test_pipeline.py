"""The pipeline on a real server, with doubles of its work orders' activities."""

import pytest
from fakes.pipeline_line import Line, after, line_of, state_of, statuses, until_issue
from fakes.running import failure_of, replayed, reset
from fakes.short_pipeline import ShortPipeline
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from septet.contracts.lanes import Role, SessionSummary
from septet.contracts.names import Status, Step
from septet.contracts.task import Task
from septet.pipelines.inputs import IssueCall, PipelineCall
from septet.pipelines.views import IssueStatus, PipelineStatus
from workflows.pipeline.workflow import Pipeline
from workflows.work_order.workflow import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOBODY = PipelineCall(who="ann")


async def test_each_agent_has_one_workspace_and_one_session_over_all_issues(client: Client, line: Line) -> None:
    """The planner's steps run in its lane and session, the executor's steps in its own; the executor gets the plan."""
    handle = await line.start("a", "b")
    view = await handle.result()
    early = [call for step in list(Step)[:3] for call in line.doubles.calls_of(step)]
    late = [call for step in list(Step)[3:] for call in line.doubles.calls_of(step)]
    assert {call.workspace.place_id for call in early} == {f"{handle.id}-planner"}
    assert {call.workspace.place_id for call in late} == {f"{handle.id}-executor-1"}
    assert view.planner is not None
    assert {call.session_id for call in early} == {None, view.planner.session_id}
    assert [call.session_id for call in early].count(None) == 1
    assert [call.session_id for call in late].count(None) == 1
    assert {asked.plan_path for asked in line.lanes if "executor" in asked.lane.id} == {"specs/plan.md"}
    assert {asked.plan_snapshot for asked in line.lanes if "executor" in asked.lane.id} == {"after-find_plan_file"}
    await replayed(handle, "pipeline/completed")
    await replayed(client.get_workflow_handle(f"{handle.id}-b"), "pipeline/member_completed")


async def test_each_issue_has_sessions_of_its_own_where_that_is_wanted(line: Line) -> None:
    """With `fresh` each issue starts new sessions, and the report shows them as fresh."""
    view = await (await line.start("a", "b", fresh=True)).result()
    first_steps = (Step.CLASSIFY_ISSUE, Step.GENERATE_BRANCH)
    assert [call.session_id for step in first_steps for call in line.doubles.calls_of(step)] == [None] * 4
    assert {issue.context for issue in view.issues} == {"fresh"}


async def test_a_session_that_is_too_long_leaves_a_summary_to_the_next_one(line: Line) -> None:
    """The old session writes a summary before the next issue begins; the next issue pays for it and starts new sessions."""
    line.tokens |= {"a": 1001, "b": 1000}
    handle = await line.start("a", "b", "c", context_tokens=1000, plans_ahead=1, budget="50usd")
    view = await handle.result()
    a, b, c = view.issues
    assert {call.pipeline_budget for call in line.summarised} == {"50usd"}
    asked = [(call.workspace.work_order_id, call.workspace.place_id, call.session_id) for call in line.summarised]
    sessions = {(session.role, session.session_id) for session in a.sessions}
    assert sorted(asked) == sorted(
        (b.order_id, f"{handle.id}-{role}{'-1' if role is Role.EXECUTOR else ''}", session)
        for role, session in sessions
    )
    assert [[each.context for each in issue.sessions] for issue in (a, b, c)] == [
        ["fresh", "fresh"],
        ["summarised", "summarised"],
        ["shared", "shared"],
    ]
    assert {session.session_id for session in b.sessions} == {session.session_id for session in c.sessions}
    assert {session.session_id for session in b.sessions}.isdisjoint({session for _, session in sessions})
    assert [issue.usage.output_tokens for issue in view.issues] == [0, 14, 0]


@pytest.mark.parametrize(
    "summary",
    [
        SessionSummary(warning="there is no summary: the answer was empty"),
        ApplicationError("there is no summary: the disk is gone", non_retryable=True),
    ],
    ids=["none", "failed"],
)
async def test_without_a_summary_a_new_session_begins_with_a_warning(
    client: Client, line: Line, summary: SessionSummary | ApplicationError
) -> None:
    """A missing summary fails no issue."""
    line.tokens["a"], line.summary = 5000, summary
    handle = await line.start("a", "b", context_tokens=1000)
    view = await handle.result()
    assert statuses(view) == ["completed", "completed"]
    assert [session.context for session in view.issues[1].sessions] == ["fresh", "fresh"]
    task = await client.get_workflow_handle(f"{handle.id}-b").query(WorkOrder.work_order)
    warned = {step.step: warning for step in task.steps for warning in step.warnings}
    assert set(warned) == {"classify_issue", "generate_branch"}
    assert all("there is no summary" in warning for warning in warned.values())


async def test_two_roles_can_have_two_agents(line: Line) -> None:
    """The planner's workspace opens for its agent, the executor's for another agent, which the opening checks before."""
    await (await line.start("a", "b", planner="thinker", executor="doer")).result()
    entered = sorted({(asked.opening.agent, asked.opening.beside) for asked in line.lanes})
    assert entered == [("doer", ()), ("thinker", ()), ("thinker", ("doer",))]


async def test_issues_that_depend_on_others_come_after_them(client: Client, line: Line) -> None:
    """Each issue runs after its dependencies, in any order of the input; all that depend on a failed issue are skipped."""
    line.fails["b", Step.IMPLEMENT_PLAN] = 2
    working = line.hold("b", Step.IMPLEMENT_PLAN)
    handle = await line.start(after("d", "c"), after("c", "b"), "a", after("b", "a"))
    await until_issue(handle, "d", IssueStatus.PLANNED)
    working.set()
    view = await handle.result()
    assert {issue.issue_id: issue.status.value for issue in view.issues} == {
        "a": "completed", "b": "failed", "c": "skipped", "d": "skipped",
    }  # fmt: skip
    assert line.events.index("a:create_pull_request:done") < line.events.index("b:generate_branch")
    assert [error.message for name in "cd" if (error := state_of(view, name).error)] == [
        "it depends on issue b, which is failed.", "it depends on issue c, which is skipped.",
    ]  # fmt: skip
    await replayed(handle, "pipeline/doomed")
    await replayed(client.get_workflow_handle(f"{handle.id}-b"), "pipeline/member_failed")


async def test_an_issue_that_cannot_be_planned_does_not_hold_up_the_others(line: Line) -> None:
    """Its planning fails after two tries; the next issue continues, and both results are noted."""
    line.fails["a", Step.BUILD_PLAN] = 2
    view = await (await line.start("a", "b")).result()
    assert statuses(view) == ["failed", "completed"]
    assert view.status is PipelineStatus.COMPLETED
    assert line.on_disk() == {issue.issue_id: issue for issue in view.issues}
    assert [report.issues for report in line.reports] == [()]  # all results were noted before


async def test_disjoint_solutions_are_carried_out_side_by_side(line: Line) -> None:
    """Two executors work on different files at once; a third issue with one of these files waits."""
    line.files = {"a": ("one.py",), "b": ("two.py",), "c": ("one.py", "three.py")}
    working = [line.hold("a", Step.IMPLEMENT_PLAN), line.hold("b", Step.IMPLEMENT_PLAN)]
    handle = await line.start("a", "b", "c", executors=3)
    await line.until("a:implement_plan")
    await line.until("b:implement_plan")
    await until_issue(handle, "c", IssueStatus.PLANNED)
    for each in working:
        each.set()
    view = await handle.result()
    assert line.events.index("a:create_pull_request:done") < line.events.index("c:generate_branch")
    assert state_of(view, "a").executor != state_of(view, "b").executor


async def test_what_was_really_changed_counts_more_than_what_was_predicted(line: Line) -> None:
    """A third issue that meets only the real diff of running issues waits for their end; each overlap is reported."""
    line.files = {"a": ("one.py",), "b": ("two.py",), "c": ("shared.py",)}
    line.real_files = {"a": ("one.py", "shared.py"), "b": ("two.py", "shared.py")}
    line.hold("c", Step.BUILD_PLAN)
    committing = [line.hold("a", Step.CREATE_COMMIT), line.hold("b", Step.CREATE_COMMIT)]
    handle = await line.start("a", "b", "c", executors=3)
    await line.until("a:create_commit")
    await line.until("b:create_commit")
    line.held["c", Step.BUILD_PLAN].set()
    await until_issue(handle, "c", IssueStatus.PLANNED)
    for each in committing:
        each.set()
    view = await handle.result()
    ends = [line.events.index(f"{name}:create_pull_request:done") for name in ("a", "b")]
    assert max(ends) < line.events.index("c:generate_branch")
    assert state_of(view, "a").overlaps == ("b",)
    assert state_of(view, "b").overlaps == ("a",)


async def test_a_paused_pipeline_begins_nothing_new(line: Line) -> None:
    """Running steps continue, the rest waits for `resume`, the view names the reason, and a second `pause` is refused."""
    planning = line.hold("a", Step.BUILD_PLAN)
    handle = await line.start("a", "b")
    await line.until("a:build_plan")
    paused = await handle.execute_update(Pipeline.pause, PipelineCall(who="ann", why="a release"))
    assert (paused.status, paused.reason) == (PipelineStatus.PAUSED, "ann paused it: a release")
    assert "**paused** (ann paused it: a release)" in str(await handle.query("__temporal_workflow_metadata"))
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update(Pipeline.pause, NOBODY)
    planning.set()
    await until_issue(handle, "a", IssueStatus.PLANNED)
    assert "a:generate_branch" not in line.events
    assert "b:classify_issue" not in line.events
    await handle.execute_update(Pipeline.resume, NOBODY)
    view = await handle.result()
    assert (statuses(view), view.reason) == (["completed", "completed"], "ann resumed it")


async def test_a_person_can_skip_an_issue_and_want_another_plan(line: Line) -> None:
    """A skipped issue gets no turn, planned or not; a replan gets the person's words; a running issue is not skipped."""
    working = line.hold("a", Step.IMPLEMENT_PLAN)
    handle = await line.start("a", "b", "c", after("d", "c"))
    await until_issue(handle, "d", IssueStatus.PLANNED)
    await line.until("a:implement_plan")
    with pytest.raises(WorkflowUpdateFailedError) as refusal:
        await handle.execute_update(Pipeline.skip, IssueCall(issue_id="a"))
    assert "Issue a is executing" in str(refusal.value.cause)
    await handle.execute_update(Pipeline.skip, IssueCall(issue_id="c", who="ann", why="not now"))
    assert statuses(await handle.query(Pipeline.pipeline)) == ["executing", "planned", "skipped", "skipped"]
    await handle.execute_update("replan", IssueCall(issue_id="b", why="smaller steps"))
    await until_issue(handle, "b", IssueStatus.PLANNED)
    working.set()
    view = await handle.result()
    assert statuses(view) == ["completed", "completed", "skipped", "skipped"]
    assert [call.reasons for call in line.doubles.calls_of(Step.BUILD_PLAN)][-1] == (
        "a person asks for another plan: smaller steps",
    )
    await replayed(handle, "pipeline/told")


async def test_a_pipeline_that_is_stopped_ends_after_what_is_under_way(line: Line) -> None:
    """The running issue completes, the others are skipped, and the agents are closed."""
    working = line.hold("a", Step.IMPLEMENT_PLAN)
    handle = await line.start("a", "b", "c")
    await line.until("a:implement_plan")
    await until_issue(handle, "b", IssueStatus.PLANNED)
    await handle.execute_update(Pipeline.stop, NOBODY)
    working.set()
    view = await handle.result()
    assert view.status is PipelineStatus.STOPPED
    assert statuses(view) == ["completed", "skipped", "skipped"]
    assert [set(asked.lanes) for asked in line.closed] == [{f"{handle.id}-planner", f"{handle.id}-executor-1"}]


async def test_a_cancelled_pipeline_ends_its_work_orders_and_closes_both_agents(
    client: Client, line: Line
) -> None:
    """Completed issues stay completed, the running issue is cancelled with a rescue, and the report is written."""
    line.hold("b", Step.IMPLEMENT_PLAN)
    handle = await line.start("a", "b", "c")
    await line.until("b:implement_plan")
    await handle.cancel()
    failure = await failure_of(handle)
    assert isinstance(failure, CancelledError)
    assert line.reports[-1].status is PipelineStatus.CANCELLED
    assert [issue.status.value for issue in line.on_disk().values()] == ["completed", "cancelled", "cancelled"]
    assert len(line.closed) == 1
    async for row in client.list_workflows(f'TaskQueue="{line.doubles.task_queue}" AND WorkflowType="WorkOrder"'):
        described = await client.get_workflow_handle(row.id, run_id=row.run_id).describe()
        assert described.close_time is not None
    await replayed(handle, "pipeline/cancelled")


async def test_a_work_order_that_is_terminated_gives_its_lane_back(client: Client, line: Line) -> None:
    """The pipeline notices the end at once, reports it, and continues with the next issue."""
    line.hold("a", Step.CLASSIFY_ISSUE)
    handle = await line.start("a", "b")
    await line.until("a:classify_issue")
    await client.get_workflow_handle(f"{handle.id}-a").terminate("it hangs")
    view = await handle.result()
    assert statuses(view) == ["failed", "completed"]
    error = state_of(view, "a").error
    assert error is not None
    assert "terminated" in error.message.lower()


@pytest.mark.parametrize(
    ("pipeline", "runs"),
    [
        (ShortPipeline, 3),
        pytest.param(Pipeline, 2, marks=[pytest.mark.recovery, pytest.mark.release, pytest.mark.timeout(400)]),
    ],
)
async def test_more_issues_than_one_run_takes_are_carried_out_by_the_next_one(
    client: Client, pipeline: type[Pipeline], runs: int
) -> None:
    """The pipeline continues as new with sessions and results; no issue runs twice, and histories stay short."""
    async with line_of(client, pipeline) as line:
        names = [f"n{number}" for number in range(pipeline.window_limits.issues_of_a_run * (runs - 1) + 1)]
        handle = await line.start(*names)
        view = await handle.result()
        assert statuses(view) == ["completed"] * len(names)
        begun = [event for event in line.events if event.endswith(":classify_issue")]
        assert len(begun) == len(set(begun)) == len(names)
        assert [call.session_id for call in line.doubles.calls_of(Step.CLASSIFY_ISSUE)].count(None) == 1
        assert line.on_disk() == {issue.issue_id: issue for issue in view.issues}
        assert [report.issues for report in line.reports] == [()]
        lengths: list[int] = []

        async def all_are_listed() -> bool:
            lengths.clear()
            async for row in client.list_workflows(f'WorkflowId="{handle.id}"'):
                described = await client.get_workflow_handle(row.id, run_id=row.run_id).describe()
                lengths.append(described.raw_description.workflow_execution_info.history_length)
            return len(lengths) == runs

        await wait_until(all_are_listed)
        assert max(lengths) < 128 * pipeline.window_limits.issues_of_a_run


async def test_one_branch_takes_a_commit_for_each_solution(line: Line) -> None:
    """Each issue continues from the last successful issue, on its branch; only the first issue names the branch."""
    line.fails["b", Step.IMPLEMENT_PLAN] = 2
    view = await (await line.start("a", "b", "c", one_branch=True)).result()
    assert statuses(view) == ["completed", "failed", "completed"]
    assert [event for event in line.events if event.endswith(":generate_branch")] == ["a:generate_branch"]
    entered = [asked.lane for asked in line.lanes if "executor" in asked.lane.id]
    assert [(lane.branch, lane.starts_from) for lane in entered] == [
        ("", ""), ("bug-issue-1-wo-1-fix", "after-create_pull_request"),
        ("bug-issue-1-wo-1-fix", "after-create_pull_request"),
    ]  # fmt: skip
    assert state_of(view, "c").branch_name == state_of(view, "a").branch_name


async def test_a_work_order_that_a_reset_takes_up_leaves_its_pipeline(client: Client, line: Line) -> None:
    """It continues in its own workspace and session with what its lane held, and the pipeline's budget still counts."""
    line.fails["a", Step.IMPLEMENT_PLAN] = 2
    line.where = {"began_at": "a" * 40, "lacks": ("feat-b",)}
    handle = await line.start("a", "b", budget="50usd")
    assert statuses(await handle.result()) == ["failed", "completed"]
    order = f"{handle.id}-a"
    begun = len(line.doubles.calls_of(Step.IMPLEMENT_PLAN))
    await reset(client, order, await before_first(client, order, "implement_plan"))
    task = await client.get_workflow_handle(order, result_type=Task).result()
    assert task.status is Status.COMPLETED
    again = line.doubles.calls_of(Step.IMPLEMENT_PLAN)[begun]
    assert (again.workspace.place_id, again.session_id, again.pipeline) == (order, None, "")
    assert (again.pays_from, again.pipeline_budget) == (handle.id, "50usd")
    opened = next(asked for name, asked in line.doubles.calls if name == "open_workspace")
    assert opened.restores == "after-generate_branch"
    place = line.doubles.calls_of(Step.CREATE_PULL_REQUEST)[-1].workspace
    assert (place.place_id, place.began_at, place.lacks) == (order, "a" * 40, ("feat-b",))
    assert place.planned_from, "what its planner left in the lane goes all the same"


async def before_first(client: Client, order_id: str, activity_name: str) -> int:
    """Return the workflow task that scheduled an activity for the first time."""
    async for event in client.get_workflow_handle(order_id).fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == activity_name:
            return scheduled.workflow_task_completed_event_id
    raise AssertionError(activity_name)


async def test_what_a_branch_does_not_hold_is_told(line: Line) -> None:
    """Of two independent dependencies the branch builds on one and names the other; the end of a chain holds the chain."""
    handle = await line.start("a", after("b", "a"), "c", after("d", "a", "b"), after("e", "d", "c"))
    view = await handle.result()
    assert [(issue.builds_on, issue.lacks) for issue in view.issues] == [
        ("", ()), ("a", ()), ("", ()), ("b", ()), ("d", ("c",)),
    ]  # fmt: skip
    lacks = {line.issue_of(asked.opening.work_order_id): asked.lane.lacks for asked in line.lanes}
    assert {name: branches for name, branches in lacks.items() if branches} == {"e": (view.issues[2].branch_name,)}
    starts = {
        line.issue_of(asked.opening.work_order_id): asked.lane.starts_from
        for asked in line.lanes
        if asked.plan_path
    }
    assert starts == {"a": "", "c": "", **dict.fromkeys("bde", "after-create_pull_request")}
    assert view.executors[0].lacks == ()
