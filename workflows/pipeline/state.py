"""What has happened in a pipeline so far: its issues, its lanes, and the table that the web UI shows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from septet.contracts.lanes import FilesChanged, Lane, LaneLeft, Role
from septet.contracts.limits import StepSettings
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.pipeline import PipelineIssue
from septet.contracts.pipeline_view import (
    ContinuedState,
    IssueSession,
    IssueState,
    IssueStatus,
    NotedIssues,
    PipelineRun,
    PipelineStatus,
    PipelineView,
)
from septet.contracts.task import Task, TaskError
from septet.pipelines.branches import below_of, held_by
from septet.pipelines.remembered import MANY, TITLE_BYTES, remembered
from septet.pipelines.schedule import CLOSED, same_files
from septet.system.text import cut_line
from septet.system.timestamps import timestamp
from workflows.pipeline._table import table


class PipelineState:
    """The issues of one pipeline, in their order, and its lanes."""

    def __init__(self, pipeline_id: str, run: PipelineRun, first_run_id: str, now: datetime) -> None:
        """Begin with what was asked for, or go on from what the run before knew."""
        carried = run.carried
        self.id = pipeline_id
        self.asked = run
        self.created_at = carried.created_at if carried else timestamp(now)
        self.first_run_id = carried.first_run_id if carried else first_run_id
        self.issues: dict[str, IssueState] = {each.issue_id: each for each in carried.issues} if carried else {}
        self.lanes: dict[str, Lane] = {lane.id: lane for lane in carried.lanes} if carried else self._fresh_lanes()
        self.paused = carried.paused if carried else False
        self.stopping = False
        self.closed_at: str | None = None
        self.status: PipelineStatus | None = None
        self.error: TaskError | None = None
        self.to_skip: dict[str, str] = {}
        """By issue: why it is to be skipped."""
        self._visits = carried.visits if carried else 0
        self._rows: dict[str, Task] = {}
        """By work order: its row as it left a lane."""

    @property
    def planner(self) -> Lane:
        """The planner's lane."""
        return self.lanes[f"{self.id}-planner"]

    @property
    def executors(self) -> tuple[Lane, ...]:
        """The executors' lanes."""
        return tuple(lane for lane in self.lanes.values() if lane.id != self.planner.id)

    @property
    def open_issues(self) -> list[IssueState]:
        """Those that have no result yet."""
        return [issue for issue in self.issues.values() if issue.status not in CLOSED]

    def take_in(self, issues: Iterable[PipelineIssue]) -> None:
        """Take in the issues, in the order in which they are to be worked on."""
        known = tuple(issues)
        self.issues = {
            each.id: IssueState(
                issue_id=each.id,
                order_id=f"{self.id}-{each.id}",
                title=each.title[:200] if len(known) <= MANY else cut_line(each.title, TITLE_BYTES),
                depends_on=each.depends_on,
                context="fresh" if self.asked.fresh else "shared",
                position=position,
            )
            for position, each in enumerate(known)
        }

    def of_order(self, order_id: str) -> IssueState | None:
        """Return the issue of a work order."""
        return self.issues.get(order_id.removeprefix(f"{self.id}-"))

    def order_of(self, issue: PipelineIssue) -> WorkOrderInput:
        """Return what a work order is asked for."""
        asked = self.asked
        return WorkOrderInput(
            repository=asked.repository,
            issue=issue.number,
            title=issue.title if issue.number is None else None,
            description=issue.body if issue.number is None else None,
            agent=asked.planner or asked.agent,
            model=asked.model,
            base=asked.base,
            project=asked.project,
            stage="triaged",
            draft=asked.draft,
            labels=asked.labels,
            steps={
                Step.BUILD_PLAN: StepSettings(wall_seconds=asked.plan_seconds),
                Step.IMPLEMENT_PLAN: StepSettings(wall_seconds=asked.execution_seconds),
            },
            pipeline=self.id,
        )

    def change(self, issue: IssueState, **values: object) -> IssueState:
        """Change what is known of an issue."""
        self.issues[issue.issue_id] = changed = issue.model_copy(update=values)
        return changed

    def visit(self, lane: Lane, issue: IssueState) -> Lane:
        """Return a lane as a work order gets it: with its session, or with none where each has its own.

        An executor begins with the work of what the issue depends on.
        """
        self._visits += 1
        values: dict[str, object] = {"session_id": None} if self.asked.fresh else {}
        if lane.id != self.planner.id and not lane.one_branch and (below := below_of(issue, self.issues)):
            lacks = tuple(name for name in issue.depends_on if name not in held_by(below, self.issues))
            values["starts_from"] = below.done_at
            values["lacks"] = tuple(self.issues[name].branch_name or name for name in lacks)
            self.change(self.issues[issue.issue_id], builds_on=below.issue_id, lacks=lacks)
        return lane.model_copy(update=values)

    def is_too_long(self, lane: Lane) -> bool:
        """Say whether a lane's session is to go on in a new one, with a summary."""
        return lane.session_id is not None and lane.context_tokens > self.asked.context_tokens

    @property
    def visits(self) -> int:
        """How often a lane was given so far."""
        return self._visits

    def left(self, told: LaneLeft) -> None:
        """Take in what a work order says as it leaves a lane."""
        lane = told.lane
        if not lane.one_branch:  # where it began this time is not where the next one begins
            lane = lane.model_copy(update={"starts_from": "", "lacks": ()})
        self.lanes[lane.id] = lane
        if told.role is Role.PLANNER and self.planner.task_queue:
            for lane in self.executors:  # the plan goes from vault to worktree, on one host
                if not _is_open(lane):
                    there = {"task_queue": self.planner.task_queue, "workspace": self.planner.workspace}
                    self.lanes[lane.id] = lane.model_copy(update=there)
        issue = self.of_order(told.order_id)
        if told.task is not None:
            self._rows[told.order_id] = told.task
        if issue is not None and told.done_at:
            issue = self.change(issue, done_at=told.done_at)
        if issue is not None and told.lane.session_id is not None:
            session = IssueSession(role=told.role, session_id=told.lane.session_id, context=told.context)
            others = (each for each in issue.sessions if each.role is not told.role)
            issue = self.change(issue, sessions=(*others, session))
        if issue is not None and told.role is Role.PLANNER and told.result is not None:
            self.change(
                issue,
                status=IssueStatus.PLANNED,
                solution=told.solution,
                plan_path=told.result.plan_path,
                planned_at=told.result.planned_at,
                planning_seconds=told.result.seconds,
            )

    def changed(self, told: FilesChanged) -> None:
        """Take in which files a work order has really changed, and who was at them at the same time."""
        issue = self.of_order(told.order_id)
        if issue is None:
            return
        issue = self.change(issue, files_modified=told.files, files_modified_count=told.count)
        beside = [each for each in self.issues.values() if each.status is IssueStatus.EXECUTING and each != issue]
        for other in beside:
            if same_files(issue, other):
                issue = self.change(issue, overlaps=(*issue.overlaps, other.issue_id))
                self.change(other, overlaps=(*other.overlaps, issue.issue_id))

    def ended(
        self, issue: IssueState, status: IssueStatus, now: datetime, task: Task | None, error: TaskError | None
    ) -> None:
        """Take in how a work order ended."""
        task = task or self._rows.pop(issue.order_id, None)
        executed = issue.status is IssueStatus.EXECUTING
        values: dict[str, object] = {"status": status, "error": error}
        if executed:
            values["executed_at"] = timestamp(now)
        if task is not None:
            values |= {
                "title": task.title[:200] or issue.title,
                "plan_path": task.plan_path,
                "branch_name": task.branch_name,
                "commit_hash": task.commit_sha,
                "pr_url": task.pr_url,
                "usage": task.usage,
                "rescue": task.rescues[-1] if task.rescues else None,
            }
            late = [row for row in task.steps if row.step in _EXECUTING]
            if executed and late:
                values["execution_seconds"] = round(sum(row.duration_seconds for row in late), 3)
        self.issues[issue.issue_id] = remembered(issue.model_copy(update=values), len(self.issues))

    def view(self) -> PipelineView:
        """Return the pipeline as every face shows it."""
        return self.view_of(self.issues)

    def view_of(self, issues: Iterable[str] = ()) -> PipelineView:
        """Return the pipeline with some of its issues: a history holds what is answered to updates and noted."""
        return PipelineView(
            id=self.id,
            repository=self.asked.repository,
            status=self._status(),
            created_at=self.created_at,
            closed_at=self.closed_at,
            planner=_shown(self.planner),
            executors=tuple(_shown(lane) for lane in self.executors),
            one_branch=self.asked.one_branch,
            fresh=self.asked.fresh,
            issues=tuple(self.shown(name) for name in issues),
            error=self.error,
        )

    def shown(self, issue_id: str) -> IssueState:
        """Return an issue as people see it: one that is to be skipped is, also while its work order ends."""
        issue, why = self.issues[issue_id], self.to_skip.get(issue_id)
        if why is None or issue.status not in {IssueStatus.WAITING, IssueStatus.PLANNED}:
            return issue
        return issue.model_copy(update={"status": IssueStatus.SKIPPED, "error": skipped(why)})

    def carried(self, noted: NotedIssues) -> ContinuedState:
        """Return what the next run has to know."""
        return ContinuedState(
            created_at=self.created_at,
            first_run_id=self.first_run_id,
            issues=tuple(self.issues.values()),
            lanes=tuple(self.lanes.values()),
            paused=self.paused,
            visits=self._visits,
            noted=noted,
        )

    def details(self) -> str:
        """Return the story as Markdown: what the web UI shows without opening a payload."""
        return table(self.id, self._status(), list(self.issues.values()), self.open_issues)

    def _status(self) -> PipelineStatus:
        if self.status is not None:
            return self.status
        if self.stopping:
            return PipelineStatus.STOPPING
        return PipelineStatus.PAUSED if self.paused else PipelineStatus.RUNNING

    def _fresh_lanes(self) -> dict[str, Lane]:
        asked = self.asked
        thinker, doer = asked.planner or asked.agent, asked.executor or asked.agent
        planner = Lane(
            id=f"{self.id}-planner",
            pipeline=self.id,
            agent=thinker,
            beside=() if doer == thinker else (doer,),
            opened_by=self.first_run_id,
        )
        executors = [
            Lane(
                id=f"{self.id}-executor-{number}",
                pipeline=self.id,
                agent=doer,
                opened_by=self.first_run_id,
                one_branch=asked.one_branch,
            )
            for number in range(1, asked.executors + 1)
        ]
        return {lane.id: lane for lane in (planner, *executors)}


_EXECUTING: Final = frozenset(
    step.value
    for step in (Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST)
)


def skipped(why: str) -> TaskError:
    """Return the reason of an issue that is skipped."""
    return TaskError(type="Skipped", message=f"{why}.")


def _is_open(lane: Lane) -> bool:
    """Say whether a lane was left somewhere; another one goes where the planner is, also after that has moved."""
    return lane.task_queue != "" and (lane.workspace is None or lane.workspace.lane == lane.id)


def _shown(lane: Lane) -> Lane:
    return lane.model_copy(update={"workspace": None, "beside": ()})
