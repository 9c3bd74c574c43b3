"""The lanes of pipelines, and the messages between a pipeline, its work orders and the hosts of its lanes."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from septet.contracts.costs import SUMMARY
from septet.contracts.facts import FileChange, Usage
from septet.contracts.order import Timeouts
from septet.contracts.solution import Outline
from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.contracts.workspace import OpenWorkspace, Workspace


class Role(StrEnum):
    """The role of a lane's agent in its pipeline."""

    PLANNER = "planner"
    EXECUTOR = "executor"


class Lane(Wire):
    """A lane: a workspace of the pipeline, and its agent's session."""

    id: str
    """The workspace's id: the pipeline's id, followed by `-planner`, `-executor-1`, `-executor-2` and so on."""
    pipeline: str
    agent: str | None = None
    """The agent; `None` for the repository's or the worker's default."""
    beside: tuple[str | None, ...] = ()
    """The agents of the other lanes; the host of this lane must have them too."""
    task_queue: str = ""
    """The queue of the lane's host; empty while the lane is not open."""
    workspace: Workspace | None = None
    """The workspace as the previous work order left it. Before the lane is open, this is the planner's workspace,
    because the lane will open on the same host. Views do not show it."""
    session_id: str | None = None
    """The session to continue; `None` for a new session."""
    context_tokens: int = 0
    """The length of the session in tokens, which the CLI reports or the host estimates."""
    summarised: bool = False
    """Whether the lane's host keeps a summary of earlier sessions, with which every new session begins."""
    opened_by: str = ""
    """The id of the pipeline's first Temporal run."""
    starts_from: str = ""
    """The snapshot with which the next work order begins; empty for the base commit."""
    lacks: tuple[str, ...] = ()
    """The branches of issues that the next work order depends on, if its first commit does not contain their
    work."""
    one_branch: bool = False
    """Whether all work orders share one branch, on which each work order continues after the previous work
    order."""
    branch: str = ""
    """The shared branch's name; empty before the branch exists."""

    def at(self, workspace: Workspace) -> "Lane":
        """Return the lane with a workspace, on that workspace's host."""
        return self.model_copy(update={"task_queue": workspace.task_queue, "workspace": workspace})


class LaneGrant(Wire):
    """The pipeline's message that gives a lane to a work order."""

    role: Role
    lane: Lane
    visit: str
    """The unique id of this visit to the lane."""
    summarise: bool = False
    """Whether the lane's session is too long, so that the agent writes a summary and a new session begins."""
    is_lost: bool = False
    """Whether a person reported the lane's host as dead, so that the lane opens on another host at once."""


class PlanningOutcome(Wire):
    """The result of an issue's planning: the plan's path, when the plan was made, and how long that took."""

    plan_path: str
    planned_at: str
    """The time of the plan: ISO 8601, UTC."""
    seconds: float


SessionContext = Literal["shared", "fresh", "summarised"]
"""How a session began: `shared` continues the session of earlier issues, `fresh` knows nothing of them, and
`summarised` begins with a summary of them."""


class LaneLeft(Wire):
    """A work order's report that it has left a lane, with its results."""

    order_id: str
    role: Role
    lane: Lane
    """The lane's state after the work order, with the host and the session."""
    solution: Outline | None = None
    """The planned solution; `None` without a plan."""
    result: PlanningOutcome | None = None
    visit: str = ""
    """The id of the ended visit to the lane."""
    task: Task | None = None
    """The work order's row when it left the lane, also for a work order without a result."""
    done_at: str = ""
    """The last snapshot of a completed work order."""
    context: SessionContext = "shared"
    """The way in which the work order's session began."""


class FilesChanged(Wire):
    """A work order's report about the files that it has changed."""

    order_id: str
    files: tuple[FileChange, ...]
    """The first twenty changed files."""
    count: int


class CloseLanes(Wire):
    """A request to end a pipeline's agents."""

    pipeline: str
    lanes: tuple[str, ...]


class EnterLane(Wire):
    """A request to enter a lane with a clean worktree, and with the plan if there is one."""

    opening: OpenWorkspace
    """The request for a workspace, with the repository and the issue."""
    lane: Lane
    visit: str
    plan_snapshot: str = ""
    """The planner's checkpoint that contains the plan; empty before the plan exists."""
    plan_path: str | None = None


class SummariseCall(Wire):
    """A request to the agent in a lane to summarise its session, which is too long, for later issues."""

    workspace: Workspace
    pipeline: str
    session_id: str
    model: str | None = None
    limits: Timeouts = Timeouts()
    project: str = ""
    budget: str = ""
    """The work order's budget, in the form of `--budget`; empty if the work order has no budget."""
    pipeline_budget: str = ""

    @property
    def name(self) -> str:
        """The name of the turn in records and folders, in place of a step's name."""
        return SUMMARY


class SessionSummary(Wire):
    """The result of a request for a summary; the summary itself is on the host's disk."""

    kept_bytes: int = 0
    """The size of the summary in bytes; 0 if the agent wrote no summary, for the reason in `warning`."""
    warning: Annotated[str, Field(max_length=500)] = ""
    model: str | None = None
    """The model that wrote the summary, if its CLI reports it."""
    usage: Usage = Usage()
