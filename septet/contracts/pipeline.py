"""A pipeline: what it is asked for, what it and its work orders tell each other, and what everybody sees of it."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.limits import Seconds
from septet.contracts.order import TEXT_LIMIT_BYTES as ISSUE_LIMIT_BYTES
from septet.contracts.order import Name, Repository
from septet.contracts.task import Task, TaskError
from septet.contracts.wire import Wire

MOST_ISSUES = 1000
PIPELINE_ID = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,40}$"
"""Shorter than a work order's: those of its issues begin with it."""
ISSUE_ID = r"^[A-Za-z0-9._-]{1,20}$"
_NOT_AN_ISSUE = re.compile(r"\.{1,2}|planner|executor-\d+|0\d+")
"""Names of folders and of lanes; and a number has one spelling."""
TEXT_LIMIT_BYTES = 1_000_000
"""The most that all issues that are given as text may hold together: a Temporal payload holds two million."""

IssueNumber = Annotated[int, Field(ge=1)]
IssueId = Annotated[str, StringConstraints(pattern=ISSUE_ID)]
PipelineId = Annotated[str, StringConstraints(pattern=PIPELINE_ID)]


class PipelineIssue(Wire):
    """One issue of a pipeline: a number on the repository's forge, or a text."""

    id: IssueId
    """Unique in the pipeline; for an issue of the forge it is the number."""
    title: Annotated[str, StringConstraints(max_length=1024)] = ""
    body: str | None = None
    """The issue's text; absent for an issue of the forge, which is read there."""
    depends_on: Annotated[tuple[IssueId, ...], Field(max_length=100)] = ()
    """Issues of the pipeline that come before it."""

    @property
    def number(self) -> int | None:
        """The issue's number on the forge; `None` for one that is given as text."""
        return int(self.id) if self.body is None and re.fullmatch("[1-9][0-9]*", self.id) else None

    @model_validator(mode="after")
    def _is_whole(self) -> "PipelineIssue":
        if _NOT_AN_ISSUE.fullmatch(self.id):
            message = f"{self.id} cannot be an issue's id: it names something else, or begins with a zero"
            raise ValueError(message)
        size = len(f"{self.title}{self.body or ''}".encode())
        if size > ISSUE_LIMIT_BYTES:
            message = (
                f"title and body hold {size} bytes, {ISSUE_LIMIT_BYTES} are allowed: put the text on the forge"
            )
            raise ValueError(message)
        if self.number is None and not self.title.strip():
            message = "title is missing: an issue is a number of the forge, or has a title and a body"
            raise ValueError(message)
        return self


class PipelineChoices(Wire):
    """How a pipeline works: all but the repository and the issues."""

    agent: Name | None = None
    """The agent of both roles; the worker's default when absent."""
    planner: Name | None = None
    """The agent that plans, where it is another one."""
    executor: Name | None = None
    """The agent that executes, where it is another one."""
    model: Name | None = None
    base: Name | None = None
    project: Name | None = None
    executors: Annotated[int, Field(ge=1, le=16)] = 1
    """How many solutions that touch different files may be carried out side by side."""
    one_branch: bool = False
    """One branch and one pull request, with a commit for each solution."""
    fresh: bool = False
    """Give each issue new sessions: what was said about another one is not known."""
    plans_ahead: Annotated[int, Field(ge=1, le=50)] = 5
    """How many solutions may wait for an executor before the planner pauses."""
    context_tokens: Annotated[int, Field(ge=1_000, le=100_000_000)] = 120_000
    """A session that has grown longer is asked for a summary, with which the next issue begins a new one."""
    plan_seconds: Seconds = 300.0
    """The most that an agent may take for a plan."""
    execution_seconds: Seconds = 600.0
    """The most that an agent may take to carry out a solution."""
    draft: bool = False
    labels: Annotated[tuple[Name, ...], Field(max_length=100)] = ()

    @model_validator(mode="after")
    def _fits(self) -> "PipelineChoices":
        if self.one_branch and self.executors > 1:
            message = "one_branch needs one executor: commits on one branch come one after the other"
            raise ValueError(message)
        return self


class PipelineInput(PipelineChoices):
    """Many issues of one repository, and how they are to be worked on."""

    repository: Repository
    issues: Annotated[tuple[PipelineIssue | IssueNumber, ...], Field(max_length=MOST_ISSUES)] = ()
    """In the order wanted; a plain number is an issue of the forge."""
    label: Name | None = None
    """Take the open issues of the forge with this label, instead of a list."""

    @property
    def listed(self) -> tuple[PipelineIssue, ...]:
        """The issues, `1` as `{"id": "1"}`."""
        return tuple(
            each if isinstance(each, PipelineIssue) else PipelineIssue(id=str(each)) for each in self.issues
        )

    @model_validator(mode="after")
    def _names_its_issues(self) -> "PipelineInput":
        if bool(self.issues) == (self.label is not None):
            message = "give issues or a label: the one or the other"
            raise ValueError(message)
        size = sum(len(f"{each.title}{each.body or ''}".encode()) for each in self.listed)
        if size > TEXT_LIMIT_BYTES:
            message = f"the issues hold {size} bytes, {TEXT_LIMIT_BYTES} are allowed: put their texts on the forge"
            raise ValueError(message)
        return self


class Role(StrEnum):
    """The two agents."""

    PLANNER = "planner"
    EXECUTOR = "executor"


class Lane(Wire):
    """A workspace of the pipeline, and the session of the agent that works in it."""

    id: str
    """The workspace's id: the pipeline's and `-planner`, or `-executor-1` and so on."""
    pipeline: str
    agent: str | None = None
    task_queue: str = ""
    """The queue of its host; empty while it is open nowhere."""
    session_id: str | None = None
    """The session to go on with; `None`: a new one begins."""
    context_tokens: int = 0
    """How long that session is, as far as its CLI tells or by an estimate."""
    summarised: bool = False
    """Its host keeps a summary of sessions before: every new one begins with it."""
    opened_by: str = ""
    """The pipeline's first Temporal run."""
    starts_from: str = ""
    """The snapshot that the next work order begins with; empty: the base commit."""
    one_branch: bool = False
    """Each work order goes on where the one before has ended, on the same branch."""
    branch: str = ""
    """That branch, once there is one."""


class Turnkey(Wire):
    """The pipeline tells a work order that a lane is its own until it says that it has left."""

    role: Role
    lane: Lane
    visit: str
    """Tells this stay in the lane from all others."""
    summarise: bool = False
    """The lane's session has become too long: ask it for a summary, and begin a new one."""


class Outline(Wire):
    """What a pipeline remembers of a solution: less than 1 KB. The whole lies on its host's disk."""

    id: str
    summary: str = ""
    tasks: tuple[tuple[str, str], ...] = ()
    """Of each: id, title."""
    files: tuple[str, ...] = ()
    """The predicted files, as far as they are remembered."""
    files_count: int = 0


class Planned(Wire):
    """What planning one issue came to."""

    plan_path: str
    planned_at: str
    """ISO 8601, UTC."""
    seconds: float


SessionContext = Literal["shared", "fresh", "summarised"]
"""`shared`: it went on from the issues before; `fresh`: it knew nothing of them; `summarised`: it began with a
summary of what came before."""


class Left(Wire):
    """A work order tells its pipeline that it has left a lane, and what it brought."""

    order_id: str
    role: Role
    lane: Lane
    """As it is left: where it is, and with which session."""
    solution: Outline | None = None
    """What was planned; `None` where there is no plan."""
    result: Planned | None = None
    visit: str = ""
    """Which of its stays in the lane is over."""
    task: Task | None = None
    """Its row as it leaves: what is known of it also where it ends without a result."""
    done_at: str = ""
    """The last snapshot of a work order that is completed."""
    context: SessionContext = "shared"
    """What its session began with."""


class IssueSession(Wire):
    """A session in which an issue was worked on."""

    role: Role
    session_id: str
    context: SessionContext


class Changed(Wire):
    """A work order tells its pipeline which files it has really changed."""

    order_id: str
    files: tuple[FileChange, ...]
    """The first twenty."""
    count: int


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
    """Whether its sessions were to know of the issues before."""
    sessions: Annotated[tuple[IssueSession, ...], Field(max_length=2)] = ()
    """The last one of each role, and what it really began with."""
    executor: str = ""
    """The lane that carried it out."""
    done_at: str = ""
    """The snapshot with which it ended, where it is completed."""
    builds_on: str = ""
    """The issue on whose branch its own one stands: of those that it depends on, the one that was done last."""
    position: int = 0
    """Its place in the order of the pipeline, from 0."""


class PlanningResult(Wire):
    """One entry of `planning-results.json`."""

    issue_id: str
    solution_id: str | None = None
    status: Literal["completed", "failed", "skipped"]
    solution: dict[str, object] | None = None
    """Whole on disk; in a query, and where the disk does not have it, its outline."""
    planned_at: str | None = None
    """ISO 8601, UTC; `None` where there is no plan."""


class ExecutionResult(Wire):
    """One entry of `execution-results.json`."""

    issue_id: str
    solution_id: str | None = None
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
    created_at: str
    closed_at: str | None = None
    planner: Lane | None = None
    executors: tuple[Lane, ...] = ()
    one_branch: bool = False
    fresh: bool = False
    issues: tuple[IssueState, ...] = ()
    error: TaskError | None = None


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


class Carried(Wire):
    """What a run of a pipeline passes on to the next one."""

    created_at: str
    first_run_id: str
    issues: tuple[IssueState, ...]
    lanes: tuple[Lane, ...]
    paused: bool = False
    visits: int = 0


class PipelineRun(PipelineInput):
    """The input of a run: what was asked for, and after the first run what was done so far."""

    carried: Carried | None = None
    """The pipeline's own; not for people."""


class IssueCall(Wire):
    """A person's word about one issue of a pipeline."""

    issue_id: str
    who: str = ""
    why: str = ""
    """For `replan`: what the planner is to be told."""


class PipelineCall(Wire):
    """A person's word about a whole pipeline."""

    who: str = ""
    why: str = ""


class ReadIssues(Wire):
    """Ask for issues of a repository's forge."""

    repository: str
    ids: tuple[IssueId, ...] = ()
    label: Name | None = None


class IssuesRead(Wire):
    """Issues of a forge, without their texts."""

    issues: tuple[PipelineIssue, ...]


class CloseLanes(Wire):
    """Ask for the end of a pipeline's agents."""

    pipeline: str
    lanes: tuple[str, ...]
