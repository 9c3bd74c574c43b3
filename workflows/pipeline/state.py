"""The state of a pipeline: its issues and its lanes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from septet.contracts.lanes import FilesChanged, Lane, LaneLeft, Role
from septet.contracts.names import Step
from septet.contracts.task import Task, TaskError
from septet.pipelines.inputs import PipelineCall, PipelineIssue
from septet.pipelines.issues import MANY, TITLE_BYTES, shorten_issue
from septet.pipelines.schedule import (
    CLOSED,
    below_of,
    held_by,
    host_of,
    is_open,
    make_lanes,
    same_files,
    shown_lane,
)
from septet.pipelines.views import (
    ContinuedState,
    IssueSession,
    IssueState,
    IssueStatus,
    NotedIssues,
    PipelineRun,
    PipelineStatus,
    PipelineView,
)
from septet.system.text import cut_line, timestamp


class PipelineState:
    """The issues of one pipeline, in their order, and its lanes."""

    def __init__(self) -> None:
        """Begin empty; `id` is empty until the input was read."""
        self.id = ""
        self.request: PipelineRun
        self.created_at = ""
        self.first_run_id = ""
        self.issues: dict[str, IssueState] = {}
        self.lanes: dict[str, Lane] = {}
        self.visits = 0
        self.is_paused = False
        self.reason = ""
        """A person's last action on the whole pipeline, with the person's reason."""
        self.is_stopping = False
        self.closed_at: str | None = None
        self.status: PipelineStatus | None = None
        self.error: TaskError | None = None
        self.to_skip: dict[str, str] = {}
        self.lost_hosts: set[str] = set()
        """The hosts that people reported dead: their lanes open on other hosts."""
        self._rows: dict[str, Task] = {}
        """For each work order's id, its row when it last left a lane."""

    def begin(self, pipeline_id: str, run: PipelineRun, first_run_id: str, now: datetime) -> None:
        """Record the pipeline's input, and restore the previous run's state from it."""
        self.id, self.request = pipeline_id, run
        if before := run.carried:
            self.created_at, self.first_run_id = before.created_at, before.first_run_id
            self.issues = {issue.issue_id: issue for issue in before.issues}
            self.lanes = {lane.id: lane for lane in before.lanes}
            self.is_paused, self.reason, self.visits = before.paused, before.reason, before.visits
            self.lost_hosts = set(before.lost_hosts)
            self.is_stopping, self.to_skip = before.stopping, dict(before.to_skip)
        else:
            self.created_at, self.first_run_id = timestamp(now), first_run_id
            self.lanes = {lane.id: lane for lane in make_lanes(pipeline_id, first_run_id, run)}

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
        """All issues without a result."""
        return [issue for issue in self.issues.values() if issue.status not in CLOSED]

    def add_issues(self, issues: Iterable[PipelineIssue]) -> None:
        """Record the issues in the order in which they will be worked on."""
        listed = tuple(issues)
        self.issues = {
            each.id: IssueState(
                issue_id=each.id,
                order_id=f"{self.id}-{each.id}",
                title=each.title[:200] if len(listed) <= MANY else cut_line(each.title, TITLE_BYTES),
                depends_on=each.depends_on,
                context="fresh" if self.request.fresh else "shared",
                position=position,
            )
            for position, each in enumerate(listed)
        }

    def issue_of(self, order_id: str) -> IssueState | None:
        """Return the issue of a work order; `None` for an unknown work order."""
        return self.issues.get(order_id.removeprefix(f"{self.id}-"))

    def change_issue(self, issue: IssueState, **values: object) -> IssueState:
        """Change fields of an issue's state, and return the new state."""
        self.issues[issue.issue_id] = issue = issue.model_copy(update=values)
        return issue

    def prepare_visit(self, lane: Lane, issue: IssueState) -> Lane:
        """Count a visit; return the lane for the visit, without a session if each issue begins a new session.

        An executor with a branch for each issue starts from the completed dependency that `below_of` returns.
        """
        self.visits += 1
        values: dict[str, object] = {"session_id": None} if self.request.fresh else {}
        if lane.id != self.planner.id and not lane.one_branch and (below := below_of(issue, self.issues)):
            lacks = tuple(name for name in issue.depends_on if name not in held_by(below, self.issues))
            values["starts_from"] = below.done_at
            values["lacks"] = tuple(self.issues[name].branch_name or name for name in lacks)
            self.change_issue(self.issues[issue.issue_id], builds_on=below.issue_id, lacks=lacks)
        return lane.model_copy(update=values)

    def has_lane_on(self, host: str) -> bool:
        """Return whether a lane is open, or is being opened, on a host."""
        return any(host_of(lane) == host for lane in self.lanes.values())

    def is_lost(self, lane: Lane) -> bool:
        """Return whether a lane is on a host that people reported dead."""
        return host_of(lane) in self.lost_hosts

    def is_too_long(self, lane: Lane) -> bool:
        """Return whether a lane's session is so long that a summary must replace it."""
        return lane.session_id is not None and lane.context_tokens > self.request.context_tokens

    def leave_lane(self, report: LaneLeft) -> None:
        """Record the report of a work order that leaves a lane."""
        lane = report.lane
        if not lane.one_branch:  # the next visit begins elsewhere
            lane = lane.model_copy(update={"starts_from": "", "lacks": ()})
        self.lanes[lane.id] = lane
        if report.result is not None or report.done_at:  # a result from there shows a living host
            self.lost_hosts.discard(host_of(lane))
        if report.role is Role.PLANNER and self.planner.task_queue:
            # Unopened executors follow to the planner's host, because the plan's snapshot is in that host's vault.
            place = {"task_queue": self.planner.task_queue, "workspace": self.planner.workspace}
            self.lanes |= {each.id: each.model_copy(update=place) for each in self.executors if not is_open(each)}
        if report.task is not None:
            self._rows[report.order_id] = report.task
        if issue := self.issue_of(report.order_id):
            self.change_issue(issue, **_values_from(report, issue))

    def change_files(self, report: FilesChanged) -> None:
        """Record the files that a work order changed; note running issues that change the same files."""
        issue = self.issue_of(report.order_id)
        if issue is None:
            return
        issue = self.change_issue(issue, files_modified=report.files, files_modified_count=report.count)
        beside = [each for each in self.issues.values() if each.status is IssueStatus.EXECUTING and each != issue]
        for other in beside:
            if same_files(issue, other):
                issue = self.change_issue(issue, overlaps=(*issue.overlaps, other.issue_id))
                self.change_issue(other, overlaps=(*other.overlaps, issue.issue_id))

    def end_issue(
        self, issue: IssueState, status: IssueStatus, now: datetime, task: Task | None, error: TaskError | None
    ) -> None:
        """Record how an issue's work order ended."""
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
            late = [row.duration_seconds for row in task.steps if row.step in _EXECUTING]
            early = [row.duration_seconds for row in task.steps if row.step not in _EXECUTING]
            if executed and late:
                values["execution_seconds"] = round(sum(late), 3)
            if issue.planning_seconds is None and early:
                values["planning_seconds"] = round(sum(early), 3)
        self.issues[issue.issue_id] = shorten_issue(issue.model_copy(update=values), len(self.issues))

    def view(self) -> PipelineView:
        """Return the pipeline with all its issues."""
        return self.view_of(self.issues)

    def view_of(self, issues: Iterable[str] = ()) -> PipelineView:
        """Return the pipeline with only the named issues, because all issues would fill the history."""
        return PipelineView(
            id=self.id,
            repository=self.request.repository,
            status=self._status(),
            reason=self.reason,
            created_at=self.created_at,
            closed_at=self.closed_at,
            planner=shown_lane(self.planner),
            executors=tuple(shown_lane(lane) for lane in self.executors),
            one_branch=self.request.one_branch,
            fresh=self.request.fresh,
            issues=tuple(self.issue_view(name) for name in issues),
            error=self.error,
        )

    def issue_view(self, issue_id: str) -> IssueState:
        """Return an issue as people see it: a skipped issue shows as skipped even while its work order ends."""
        issue, why = self.issues[issue_id], self.to_skip.get(issue_id)
        if why is None or issue.status not in {IssueStatus.WAITING, IssueStatus.PLANNED}:
            return issue
        return issue.model_copy(update={"status": IssueStatus.SKIPPED, "error": skip_error(why)})

    def continued_state(self, noted_issues: NotedIssues) -> ContinuedState:
        """Return the state that the next workflow run gets."""
        return ContinuedState(
            created_at=self.created_at,
            first_run_id=self.first_run_id,
            issues=tuple(self.issues.values()),
            lanes=tuple(self.lanes.values()),
            paused=self.is_paused,
            reason=self.reason,
            visits=self.visits,
            noted=noted_issues,
            lost_hosts=tuple(sorted(self.lost_hosts)),
            stopping=self.is_stopping,
            to_skip={
                issue.issue_id: self.to_skip[issue.issue_id]
                for issue in self.open_issues
                if issue.issue_id in self.to_skip
            },
        )

    def take_word(self, verb: str, call: PipelineCall) -> None:
        """Record what a person did with the whole pipeline, and why."""
        words = f"{call.who or 'a person'} {verb} it{f': {call.why}' if call.why else ''}"
        self.reason = cut_line(words, _REASON_BYTES)

    def _status(self) -> PipelineStatus:
        if self.status is not None:
            return self.status
        if self.is_stopping:
            return PipelineStatus.STOPPING
        return PipelineStatus.PAUSED if self.is_paused else PipelineStatus.RUNNING


_REASON_BYTES: Final = 500
_EXECUTING: Final = frozenset(
    step.value
    for step in (Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST)
)


def skip_error(why: str) -> TaskError:
    """Return the error that a skipped issue shows."""
    return TaskError(type="Skipped", message=f"{why}.")


def _values_from(report: LaneLeft, issue: IssueState) -> dict[str, object]:
    values: dict[str, object] = {}
    if report.done_at:
        values["done_at"] = report.done_at
    if report.lane.session_id is not None:
        session = IssueSession(role=report.role, session_id=report.lane.session_id, context=report.context)
        values["sessions"] = (*(each for each in issue.sessions if each.role is not report.role), session)
    if report.role is Role.PLANNER and report.result is not None:
        values |= {
            "status": IssueStatus.PLANNED,
            "solution": report.solution,
            "plan_path": report.result.plan_path,
            "plan_bytes": (report.task.plan_bytes if report.task is not None else None) or 0,
            "planned_at": report.result.planned_at,
            "planning_seconds": report.result.seconds,
        }
    return values
