"""A pipeline as everybody sees it, and what one run of it passes on to the next."""

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
    """A session in which an issue was worked on."""

    role: Role
    session_id: str
    context: SessionContext


class IssueStatus(StrEnum):
    """Where an issue of a pipeline is."""

    WAITING = "waiting"
    PLANNING = "planning"
    PLANNED = "planned"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class IssueState(Wire):
    """What a pipeline knows of one issue."""

    issue_id: str
    order_id: str
    """Its work order."""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    status: IssueStatus = IssueStatus.WAITING
    solution: Outline | None = None
    planned_at: str | None = None
    """ISO 8601, UTC; so is `executed_at`."""
    executed_at: str | None = None
    planning_seconds: float | None = None
    execution_seconds: float | None = None
    plan_path: str | None = None
    plan_bytes: int = 0
    """The size of the plan; 0 where there is none, or an older version planned it."""
    branch_name: str | None = None
    commit_hash: str | None = None
    pr_url: str | None = None
    files_modified: tuple[FileChange, ...] = ()
    """The first twenty, as git has seen them."""
    files_modified_count: int = 0
    usage: Usage = Usage()
    error: TaskError | None = None
    """Why it failed or was skipped."""
    rescue: Rescue | None = None
    overlaps: tuple[str, ...] = ()
    """Issues that were carried out at the same time and, as the real diff shows, changed the same files."""
    context: Literal["shared", "fresh"] = "shared"
    """Whether its sessions should know of the earlier issues."""
    sessions: Annotated[tuple[IssueSession, ...], Field(max_length=2)] = ()
    """The last session of each role, and how it really began."""
    executor: str = ""
    """The lane that implemented it."""
    done_at: str = ""
    """The snapshot with which it ended, where it is completed."""
    builds_on: str = ""
    """The issue on whose branch its own one stands: of those it depends on, the one that holds most of them."""
    lacks: tuple[str, ...] = ()
    """Issues that it depends on whose work its branch does not contain."""
    position: int = 0
    """Its place in the order of the pipeline, from 0."""


class PipelineStatus(StrEnum):
    """Where a pipeline is."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    """What is under way is carried to its end, and nothing new begins."""
    COMPLETED = "completed"
    """Every issue has its result; some may have failed."""
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PipelineView(Wire):
    """A pipeline as every face shows it."""

    id: str
    repository: str
    status: PipelineStatus
    reason: str = ""
    """What someone last did with the pipeline, and why: `ann paused it: a release`."""
    created_at: str
    closed_at: str | None = None
    planner: Lane | None = None
    executors: tuple[Lane, ...] = ()
    one_branch: bool = False
    fresh: bool = False
    issues: tuple[IssueState, ...] = ()
    error: TaskError | None = None
    stuck: str | None = None
    """As a task's: why no worker can take its next decision, and what helps."""
    needs: tuple[str, ...] = ()
    """What its work orders need you for, with the commands that answer; clients find that out."""


class PipelineReport(Wire):
    """`report.json`: what became of a pipeline, and what it took."""

    pipeline: PipelineView
    """All of it."""
    counts: dict[str, int]
    """By status: how many issues."""
    usage: Usage
    planning_seconds: float
    """Of all issues together; so are `execution_seconds`."""
    execution_seconds: float


class NotedIssues(Wire):
    """What a run of a pipeline has noted on disk."""

    queue: str
    """The queue of the host that has it."""
    lacks: tuple[str, ...] = ()
    """Closed issues of which it has nothing, or not what is known now."""


class ContinuedState(Wire):
    """What a run of a pipeline passes on to the next one."""

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
    """By open issue: why it is to be skipped."""

    @field_serializer("issues")
    def _issues_in_short(self, issues: tuple[IssueState, ...]) -> list[dict[str, object]]:
        """Leave out what is as it is by default: there may be a thousand, and most of them have not begun."""
        return [issue.model_dump(mode="json", exclude_defaults=True) for issue in issues]


class PipelineRun(PipelineInput):
    """The input of a run: what was asked for, and after the first run what was done so far."""

    carried: ContinuedState | None = None
    """The pipeline's own; not for people."""


class PlanningResult(Wire):
    """One entry of `planning-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """`solution.id`, so that both documents name the solution alike."""
    status: Literal["completed", "failed", "skipped"]
    solution: dict[str, object] | None = None
    """Whole on disk; in a query, and where the disk does not have it, its outline."""
    planned_at: str | None = None
    """ISO 8601, UTC; `None` where there is no plan."""


class ExecutionResult(Wire):
    """One entry of `execution-results.json`."""

    issue_id: str
    solution_id: str | None = None
    """Equal to `PlanningResult.solution_id`: this document is read without the other, and has no `solution`."""
    status: Literal["completed", "failed", "cancelled", "skipped"]
    commit_hash: str | None = None
    files_modified: tuple[str, ...] = ()
    """Whole on the disk of the host that carried it out; elsewhere the first twenty."""
    executed_at: str | None = None
    """ISO 8601, UTC; `None` where nothing was carried out."""


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
