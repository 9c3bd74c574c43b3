"""A queue with a worker that runs pipelines, with doubles of the work orders' activities."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from fakes.activities import Doubles, done, ended
from fakes.waiting import wait_until
from temporalio import activity
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Replayer, Worker

from septet.contracts.facts import FileChange, Usage
from septet.contracts.lanes import CloseLanes, EnterLane, SessionSummary, SummariseCall
from septet.contracts.names import Step, Verdict
from septet.contracts.solution import Outline
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.workspace import MoveWorkspace, Workspace
from septet.pipelines.inputs import IssuesRead, PipelineIssue, ReadIssues
from septet.pipelines.views import IssueState, IssueStatus, PipelineView
from workers.connection.plugin import SeptetPlugin
from workflows.budgets import Account
from workflows.pipeline.workflow import Pipeline
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order.workflow import WorkOrder

SUMMARY = SessionSummary(kept_bytes=100, usage=Usage(output_tokens=7))


def after(name: str, *before: str) -> dict[str, object]:
    return {"id": name, "title": name, "body": "Do it.", "depends_on": list(before)}


@dataclass
class Line:
    """A queue with a worker; a test can hold the steps of its agents."""

    client: Client
    doubles: Doubles
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The predicted and then changed files, by issue."""
    real_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held: dict[tuple[str, Step], asyncio.Event] = field(default_factory=dict)
    """The event that ends the step, by issue and step."""
    fails: dict[tuple[str, Step], int] = field(default_factory=dict)
    """The number of tries that fail, by issue and step."""
    lanes: list[EnterLane] = field(default_factory=list)
    noted: list[PipelineView] = field(default_factory=list)
    reports: list[PipelineView] = field(default_factory=list)
    closed: list[CloseLanes] = field(default_factory=list)
    unnoted: set[str] = field(default_factory=set)
    """Issues whose notes cannot be written to disk; the report can."""
    tokens: dict[str, int] = field(default_factory=dict)
    """The length of the sessions at the issue's end in tokens, by issue."""
    summary: SessionSummary | ApplicationError = field(default_factory=lambda: SUMMARY)
    summarised: list[SummariseCall] = field(default_factory=list)
    read: dict[str, PipelineIssue] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    reading: asyncio.Event | None = None
    """The event until which the forge does not answer."""
    refusal: ApplicationError | None = None
    """The forge's error in place of an answer."""
    noting: asyncio.Event | None = None
    """The event until which notes are not written."""
    writing: asyncio.Event | None = None
    """The event until which the report is not written."""
    where: dict[str, Any] = field(default_factory=dict)
    """The host of the next entered lane; empty for this test's own worker."""

    async def step(self, call: StepCall) -> StepResult:
        issue = self.issue_of(call.workspace.work_order_id)
        self.events.append(f"{issue}:{call.step.value}")
        await _released(self.held.get((issue, call.step)))
        session = call.session_id or f"{call.workspace.place_id}-session-{len(self.events)}"
        if self.fails.get((issue, call.step), 0) > 0:
            self.fails[issue, call.step] -= 1
            return ended(call, Verdict.REFUSED, "it cannot be done").model_copy(update={"session_id": session})
        facts: dict[str, Any] = {"context_tokens": self.tokens.get(issue, 0)}
        if call.step is Step.BUILD_PLAN:
            files = self.files.get(issue, (f"{issue}.py",))
            facts["outline"] = Outline(id=f"SOL-{issue}", files=files, files_count=len(files))
        if call.step is Step.IMPLEMENT_PLAN:
            real = self.real_files.get(issue) or self.files.get(issue, (f"{issue}.py",))
            changes = tuple(FileChange(path=path, operation="modify") for path in ("specs/plan.md", *real))
            facts |= {"files_changed": changes, "files_changed_count": len(changes)}
        self.events.append(f"{issue}:{call.step.value}:done")
        return done(call, **facts).model_copy(update={"session_id": session})

    def issue_of(self, order_id: str) -> str:
        return order_id.rpartition("-")[2]

    def activities(self) -> list[Callable[..., Any]]:
        @activity.defn(name="enter_lane")
        async def enter_lane(asked: EnterLane) -> Workspace:
            self.lanes.append(asked)
            workspace = self.doubles.workspace(asked.opening)
            stay = {"lane": asked.lane.id, "visit": asked.visit, "opened_by": asked.lane.opened_by}
            return workspace.model_copy(update=stay | self.where)

        @activity.defn(name="summarise_session")
        async def summarise_session(asked: SummariseCall) -> SessionSummary:
            self.summarised.append(asked)
            if isinstance(self.summary, ApplicationError):
                raise self.summary
            return self.summary

        @activity.defn(name="close_lanes")
        async def close_lanes(asked: CloseLanes) -> None:
            self.closed.append(asked)

        @activity.defn(name="read_issues")
        async def read_issues(asked: ReadIssues) -> IssuesRead:
            self.events.append("reading")
            await _released(self.reading)
            if self.refusal is not None:
                raise self.refusal
            return IssuesRead(issues=tuple(self.read.get(name, PipelineIssue(id=name)) for name in asked.ids))

        @activity.defn(name="note_results")
        async def note_results(some: PipelineView) -> None:
            await _released(self.noting)
            if self.unnoted & {issue.issue_id for issue in some.issues}:
                raise ApplicationError("No space is left.", type="Storage", non_retryable=True)
            self.noted.append(some)

        @activity.defn(name="write_report")
        async def write_report(view: PipelineView) -> None:
            self.events.append("writing")
            await _released(self.writing)
            self.reports.append(view)

        return [enter_lane, summarise_session, close_lanes, read_issues, note_results, write_report]

    @asynccontextmanager
    async def another_host(self, *, kept: bool) -> AsyncIterator[None]:
        """Let lanes be entered on a host that serves during the block, and is silent after it."""
        queue = f"{self.doubles.task_queue}-another"
        self.where = {"host": "another", "task_queue": queue, "control_queue": f"{queue}-control", "kept": kept}
        self.where |= {"probe_seconds": 0.5}
        activities = [*self.doubles.activities(), *self.activities()]
        async with Worker(self.client, task_queue=queue, activities=activities):
            yield
        self.where = {}

    def moving_here(self) -> list[MoveWorkspace]:
        """Let workspaces move to this test's own worker, and return the growing list of moves."""
        moves: list[MoveWorkspace] = []

        def moved(asked: MoveWorkspace) -> Workspace:
            moves.append(asked)
            here = {"host": "host", "task_queue": self.doubles.task_queue, "control_queue": ""}
            return asked.workspace.model_copy(update=here)

        self.doubles.move_workspace = moved
        return moves

    async def give_up(self, pipeline: WorkflowHandle[Any, PipelineView], issue_id: str) -> None:
        """Report the other host as lost as soon as an issue's work order waits for it."""
        order = self.client.get_workflow_handle(f"{pipeline.id}-{issue_id}")

        async def said() -> bool:
            try:
                await order.execute_update(WorkOrder.host_gone, "another")
            except WorkflowUpdateFailedError:
                return False
            return True

        await wait_until(said)

    async def start(self, *issues: object, **fields: Any) -> WorkflowHandle[Any, PipelineView]:
        """Start a pipeline of issues; a name alone stands for an issue with text."""
        given = [
            {"id": each, "title": f"Issue {each}", "body": "Do it."} if isinstance(each, str) else each
            for each in issues
        ]
        return await self.client.start_workflow(
            "Pipeline",
            {"repository": "/app", "issues": given, **fields},
            id=f"pl-{uuid.uuid4().hex[:12]}",
            task_queue=self.doubles.task_queue,
            result_type=PipelineView,
        )

    def on_disk(self) -> dict[str, IssueState]:
        """Return the last state of each issue in the notes and the report."""
        return {issue.issue_id: issue for view in (*self.noted, *self.reports) for issue in view.issues}

    def hold(self, issue: str, step: Step) -> asyncio.Event:
        return self.held.setdefault((issue, step), asyncio.Event())

    async def until(self, event: str) -> None:
        await wait_until(lambda: event in self.events)


async def _released(held: asyncio.Event | None) -> None:
    """Wait until the event is set; heartbeats receive a cancel meanwhile."""
    while held is not None and not held.is_set():
        activity.heartbeat()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await held.wait()


async def until_issue(handle: WorkflowHandle[Any, PipelineView], issue_id: str, status: IssueStatus) -> None:
    ask = partial(handle.query, Pipeline.pipeline)
    await wait_until(ask, lambda view: state_of(view, issue_id).status is status)


def state_of(view: PipelineView, issue_id: str) -> IssueState:
    return next(issue for issue in view.issues if issue.issue_id == issue_id)


def statuses(view: PipelineView) -> list[str]:
    return [issue.status.value for issue in view.issues]


@asynccontextmanager
async def line_of(client: Client, pipeline: type[Pipeline] = Pipeline) -> AsyncIterator[Line]:
    """Yield a queue with a worker; at the end stop all its workflows and replay each pipeline's history."""
    doubles = Doubles(task_queue=f"queue-{uuid.uuid4().hex}")
    line = Line(client, doubles)
    for step in Step:
        doubles.steps[step] = [line.step]
    async with Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow, Account, pipeline],
        activities=[*doubles.activities(), *line.activities()],
        max_heartbeat_throttle_interval=timedelta(seconds=0.1),
    ):
        yield line
        on_it = f'TaskQueue="{doubles.task_queue}"'
        async for row in client.list_workflows(f'{on_it} AND ExecutionStatus="Running"'):
            with suppress(RPCError):  # the workflow has ended in the meantime
                await client.get_workflow_handle(row.id, run_id=row.run_id).terminate()
        for held in line.held.values():
            held.set()
    replayer = Replayer(workflows=[pipeline, WorkOrder], plugins=[SeptetPlugin()])
    histories = client.list_workflows(f'{on_it} AND WorkflowType IN ("Pipeline", "WorkOrder")')
    await replayer.replay_workflows(histories.map_histories())
