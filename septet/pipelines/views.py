"""The views and replies about pipelines, and the state that one workflow run passes to the next."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_serializer

from septet.contracts.costs import Estimate
from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.lanes import Lane, Role, SessionContext
from septet.contracts.replies import PagedReply, Reply
from septet.contracts.solution import Outline
from septet.contracts.task import TaskError
from septet.contracts.wire import Wire
from septet.pipelines.inputs import PipelineInput


class IssueSession(Wire):
    """The session in which an agent worked on an issue."""

    role: Role
    session_id: str
    context: SessionContext


class IssueStatus(StrEnum):
    """The status of an issue of a pipeline."""

    WAITING = "waiting"
    PLANNING = "planning"
    PLANNED = "planned"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class IssueState(Wire):
    """The state of one issue of a pipeline."""

    issue_id: str
    order_id: str
    """The id of the issue's work order."""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    status: IssueStatus = IssueStatus.WAITING
    solution: Outline | None = None
    planned_at: str | None = None
    """The time of the plan: ISO 8601, UTC. `executed_at` has the same form."""
    executed_at: str | None = None
    planning_seconds: float | None = None
    execution_seconds: float | None = None
    plan_path: str | None = None
    plan_bytes: int = 0
    """The size of the plan in bytes; 0 without a plan, and for a plan of an older version of Septet."""
    branch_name: str | None = None
    commit_hash: str | None = None
    pr_url: str | None = None
    files_modified: tuple[FileChange, ...] = ()
    """The first twenty changed files, as git reports them."""
    files_modified_count: int = 0
    usage: Usage = Usage()
    error: TaskError | None = None
    """The reason why the issue failed or was skipped."""
    rescue: Rescue | None = None
    overlaps: tuple[str, ...] = ()
    """The issues that executors implemented at the same time and whose diffs change the same files."""
    context: Literal["shared", "fresh"] = "shared"
    """`shared` if the issue's sessions should continue the sessions of earlier issues; otherwise `fresh`."""
    sessions: Annotated[tuple[IssueSession, ...], Field(max_length=2)] = ()
    """The last session of each role, with the way in which the session really began."""
    executor: str = ""
    """The lane that implemented the issue."""
    done_at: str = ""
    """The name of a completed issue's last snapshot, at which dependent issues may start."""
    builds_on: str = ""
    """The issue on whose branch this issue's branch starts: the dependency that contains the most other
    dependencies."""
    lacks: tuple[str, ...] = ()
    """The issues that this issue depends on, if this issue's branch does not contain their work."""
    position: int = 0
    """The issue's place in the order of the pipeline, from 0."""


class PipelineStatus(StrEnum):
    """The status of a pipeline."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    """The pipeline finishes the running work and begins no other work."""
    COMPLETED = "completed"
    """Every issue has a result; some issues may have failed."""
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PipelineView(Wire):
    """A pipeline as people and programs see it."""

    id: str
    repository: str
    status: PipelineStatus
    reason: str = ""
    """The last decision of a person about the pipeline, and its reason: `ann paused it: a release`."""
    created_at: str
    closed_at: str | None = None
    planner: Lane | None = None
    executors: tuple[Lane, ...] = ()
    one_branch: bool = False
    fresh: bool = False
    issues: tuple[IssueState, ...] = ()
    error: TaskError | None = None
    stuck: str | None = None
    """Why no worker can continue the pipeline, with a remedy."""
    needs: tuple[str, ...] = ()
    """The questions to you from the pipeline's work orders, with the commands that answer; clients collect the
    questions."""


class PipelineReport(Wire):
    """The content of `report.json`: the results, the use and the times of a pipeline."""

    pipeline: PipelineView
    """The whole pipeline."""
    counts: dict[str, int]
    """The number of issues, by status."""
    usage: Usage
    planning_seconds: float
    """The seconds for the plans of all issues together. `execution_seconds` also counts all issues together."""
    execution_seconds: float


class NotedIssues(Wire):
    """Which closed issues have their current states on a host's disk: all except `lacks`."""

    queue: str
    """The queue of the host that has the records."""
    lacks: tuple[str, ...] = ()
    """The closed issues without a record on disk, or with an outdated record."""


class ContinuedState(Wire):
    """The state that a pipeline's workflow passes to its next run."""

    created_at: str
    first_run_id: str
    issues: tuple[IssueState, ...]
    lanes: tuple[Lane, ...]
    paused: bool = False
    reason: str = ""
    visits: int = 0
    noted: NotedIssues | None = None
    lost_hosts: tuple[str, ...] = ()
    stopping: bool = False
    to_skip: dict[str, str] = Field(default_factory=dict)
    """The reason to skip an open issue, by the issue's id."""

    @field_serializer("issues")
    def _issues_in_short(self, issues: tuple[IssueState, ...]) -> list[dict[str, object]]:
        """Return all issues without fields that have default values, so that a thousand issues stay small."""
        return [issue.model_dump(mode="json", exclude_defaults=True) for issue in issues]


class PipelineRun(PipelineInput):
    """The input of a pipeline's workflow run: a person's input, and in later runs also the state so far."""

    carried: ContinuedState | None = None
    """The state from the previous run; people do not set this field."""


class PlanningResult(Wire):
    """One entry of `planning-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """The solution's `id`, which names the solution here and in `execution-results.json`."""
    status: Literal["completed", "failed", "skipped"]
    solution: dict[str, object] | None = None
    """The whole solution; only the outline in a reply to a query, or if the disk lacks the solution."""
    planned_at: str | None = None
    """The time of the plan: ISO 8601, UTC; `None` without a plan."""


class ExecutionResult(Wire):
    """One entry of `execution-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """The same id as `PlanningResult.solution_id`, because this document has no `solution`."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    commit_hash: str | None = None
    files_modified: tuple[str, ...] = ()
    """The changed files: on the disk of the executor's host all files, elsewhere the first twenty files."""
    executed_at: str | None = None
    """The time of the implementation: ISO 8601, UTC; `None` if nothing was implemented."""


class PlanningResults(Wire):
    """The content of `planning-results.json`."""

    phase: Literal["planning"] = "planning"
    created_at: str
    results: tuple[PlanningResult, ...] = ()


class ExecutionResults(Wire):
    """The content of `execution-results.json`."""

    phase: Literal["execution"] = "execution"
    created_at: str
    results: tuple[ExecutionResult, ...] = ()


class PipelineReply(Reply):
    """The reply to the start of a pipeline and to every decision about the pipeline."""

    pipeline: PipelineView
    estimate: Estimate | None = None
    """The expected cost: at the start, the cost of the whole pipeline; later, the cost of all issues without a
    result."""


class DryRunIssue(Wire):
    """One issue in the dry run of a pipeline."""

    id: str
    title: str = ""
    depends_on: tuple[str, ...] = ()


class PipelineDryRunReply(Reply):
    """The dry run of a pipeline: the pipeline was not started."""

    repository: str
    planner: str
    """The agent that plans; empty if no worker reports its default agent."""
    executor: str
    executors: int
    one_branch: bool
    issues: tuple[DryRunIssue, ...]
    """The issues in the order of work."""
    estimate: Estimate
    """The expected cost."""


class PipelineRow(Wire):
    """A pipeline in a list."""

    id: str
    repository: str
    status: PipelineStatus
    created_at: str
    """The time of the pipeline's start: ISO 8601, UTC. `closed_at` has the same form."""
    closed_at: str | None = None
    counts: dict[IssueStatus, int] = Field(default_factory=dict)
    """The number of issues, by status; empty if the pipeline did not answer."""
    reason: str = ""
    """Why the pipeline failed, or the first issue that failed with the reason; empty without a failure."""


class PipelinesReply(PagedReply):
    """Pipelines: open pipelines before closed pipelines, the newest first."""

    pipelines: tuple[PipelineRow, ...] = ()


class ResultsReply(Reply):
    """The results of planning and execution, perhaps of a pipeline that still runs."""

    planning: PlanningResults
    """The planning results, each with the whole solution if this host has the solution, and otherwise with the
    solution's outline."""
    execution: ExecutionResults


class ReportReply(Reply):
    """The current report on a pipeline."""

    report: PipelineReport
    markdown: str
    """The report as Markdown."""
