"""The views of a pipeline, and the state that one workflow run of it passes to the next."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_serializer

from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.lanes import Lane, Role, SessionContext
from septet.contracts.pipeline import PipelineInput
from septet.contracts.solution import Outline
from septet.contracts.task import TaskError
from septet.contracts.wire import Wire


class IssueSession(Wire):
    """A session in which an agent worked on an issue."""

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
    """The id of its work order."""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    status: IssueStatus = IssueStatus.WAITING
    solution: Outline | None = None
    planned_at: str | None = None
    """The time of the plan: ISO 8601, UTC; so is `executed_at`."""
    executed_at: str | None = None
    planning_seconds: float | None = None
    execution_seconds: float | None = None
    plan_path: str | None = None
    plan_bytes: int = 0
    """The size of the plan in bytes; 0 if there is none, or an older version planned it."""
    branch_name: str | None = None
    commit_hash: str | None = None
    pr_url: str | None = None
    files_modified: tuple[FileChange, ...] = ()
    """The first twenty changed files, as git reports them."""
    files_modified_count: int = 0
    usage: Usage = Usage()
    error: TaskError | None = None
    """Why it failed or was skipped."""
    rescue: Rescue | None = None
    overlaps: tuple[str, ...] = ()
    """Issues that were implemented at the same time and, by their real diffs, changed the same files."""
    context: Literal["shared", "fresh"] = "shared"
    """Whether its sessions are to continue from the earlier issues."""
    sessions: Annotated[tuple[IssueSession, ...], Field(max_length=2)] = ()
    """The last session of each role, with its real start."""
    executor: str = ""
    """The lane that implemented it."""
    done_at: str = ""
    """The last snapshot of a completed issue."""
    builds_on: str = ""
    """The issue on whose branch its own branch starts: of its dependencies, the issue that contains most of
    them."""
    lacks: tuple[str, ...] = ()
    """The issues that it depends on whose work its branch does not contain."""
    position: int = 0
    """Its place in the order of the pipeline, from 0."""


class PipelineStatus(StrEnum):
    """The status of a pipeline."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    """Running work is finished, and nothing new begins."""
    COMPLETED = "completed"
    """Every issue has its result; some may have failed."""
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PipelineView(Wire):
    """A pipeline, as every interface shows it."""

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
    """Why no worker can continue it, and what helps."""
    needs: tuple[str, ...] = ()
    """The questions of its work orders to you, with the commands that answer; clients collect them."""


class PipelineReport(Wire):
    """`report.json`: the results of a pipeline, with its use and times."""

    pipeline: PipelineView
    """The whole pipeline."""
    counts: dict[str, int]
    """By status: the number of issues."""
    usage: Usage
    planning_seconds: float
    """The seconds of all issues together; so are `execution_seconds`."""
    execution_seconds: float


class NotedIssues(Wire):
    """The issues that a pipeline has recorded on disk."""

    queue: str
    """The queue of the host that has the records."""
    lacks: tuple[str, ...] = ()
    """Closed issues without a record, or with an outdated record."""


class ContinuedState(Wire):
    """The state that one workflow run of a pipeline passes to the next."""

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
    """By open issue: the reason to skip it."""

    @field_serializer("issues")
    def _issues_in_short(self, issues: tuple[IssueState, ...]) -> list[dict[str, object]]:
        """Leave out default values: there may be a thousand issues, and most of them have not begun."""
        return [issue.model_dump(mode="json", exclude_defaults=True) for issue in issues]


class PipelineRun(PipelineInput):
    """The input of a workflow run: the pipeline's input, and after the first run the state so far."""

    carried: ContinuedState | None = None
    """The state from the previous run; not for people."""


class PlanningResult(Wire):
    """One entry of `planning-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """`solution.id`: both documents name the solution by it."""
    status: Literal["completed", "failed", "skipped"]
    solution: dict[str, object] | None = None
    """The whole solution on disk; its outline in a query, or if the disk lacks it."""
    planned_at: str | None = None
    """The time of the plan: ISO 8601, UTC; `None` without a plan."""


class ExecutionResult(Wire):
    """One entry of `execution-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """Equal to `PlanningResult.solution_id`, because this document has no `solution`."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    commit_hash: str | None = None
    files_modified: tuple[str, ...] = ()
    """The changed files: all of them on the disk of the executor's host, elsewhere the first twenty."""
    executed_at: str | None = None
    """The time of the implementation: ISO 8601, UTC; `None` if nothing was implemented."""


class PlanningResults(Wire):
    """`planning-results.json`."""

    phase: Literal["planning"] = "planning"
    created_at: str
    results: tuple[PlanningResult, ...] = ()


class ExecutionResults(Wire):
    """`execution-results.json`."""

    phase: Literal["execution"] = "execution"
    created_at: str
    results: tuple[ExecutionResult, ...] = ()
