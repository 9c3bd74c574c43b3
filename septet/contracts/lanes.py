"""Lanes: what a pipeline and its work orders tell each other, and ask of the hosts that have them."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from septet.contracts.costs import SUMMARY
from septet.contracts.facts import FileChange, Usage
from septet.contracts.limits import Timeouts
from septet.contracts.solution import Outline
from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.contracts.workspace import OpenWorkspace, Workspace


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
    """`None`: the repository's, or the worker's default."""
    beside: tuple[str | None, ...] = ()
    """The agents of the other lanes, which open where this one is."""
    task_queue: str = ""
    """The queue of its host; empty while it is open nowhere."""
    workspace: Workspace | None = None
    """How the work order before has left it; of a lane that is open nowhere yet, how the planner's was left, on
    whose host it is to be. Views do not show it."""
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
    lacks: tuple[str, ...] = ()
    """The branches of issues that the next work order depends on, and that what it begins with does not hold."""
    one_branch: bool = False
    """Each work order goes on where the one before has ended, on the same branch."""
    branch: str = ""
    """That branch, once there is one."""

    def at(self, workspace: Workspace) -> "Lane":
        """Return it where a workspace is, as the work order that has it leaves it or is about to enter it."""
        return self.model_copy(update={"task_queue": workspace.task_queue, "workspace": workspace})


class LaneGrant(Wire):
    """The pipeline tells a work order that a lane is its own until it says that it has left."""

    role: Role
    lane: Lane
    visit: str
    """Tells this visit to the lane from all others."""
    summarise: bool = False
    """The lane's session has become too long: ask it for a summary, and begin a new one."""
    is_lost: bool = False
    """A person says that the host where the lane is is dead: it opens elsewhere at once."""


class PlanningOutcome(Wire):
    """What planning one issue came to."""

    plan_path: str
    planned_at: str
    """ISO 8601, UTC."""
    seconds: float


SessionContext = Literal["shared", "fresh", "summarised"]
"""`shared`: it went on from the issues before; `fresh`: it knew nothing of them; `summarised`: it began with a
summary of what came before."""


class LaneLeft(Wire):
    """A work order tells its pipeline that it has left a lane, and what it brought."""

    order_id: str
    role: Role
    lane: Lane
    """As it is left: where it is, and with which session."""
    solution: Outline | None = None
    """What was planned; `None` where there is no plan."""
    result: PlanningOutcome | None = None
    visit: str = ""
    """Which of its stays in the lane is over."""
    task: Task | None = None
    """Its row as it leaves: what is known of it also where it ends without a result."""
    done_at: str = ""
    """The last snapshot of a work order that is completed."""
    context: SessionContext = "shared"
    """What its session began with."""


class FilesChanged(Wire):
    """A work order tells its pipeline which files it has really changed."""

    order_id: str
    files: tuple[FileChange, ...]
    """The first twenty."""
    count: int


class CloseLanes(Wire):
    """Ask for the end of a pipeline's agents."""

    pipeline: str
    lanes: tuple[str, ...]


class EnterLane(Wire):
    """Ask for a lane of a pipeline: fresh, and with the plan in it where there is one."""

    opening: OpenWorkspace
    """What is worked on."""
    lane: Lane
    visit: str
    plan_snapshot: str = ""
    """The planner's checkpoint that holds the plan; empty where nothing is planned yet."""
    plan_path: str | None = None


class SummariseCall(Wire):
    """Ask a lane's session, which has become too long, for what the issues after this one need of it."""

    workspace: Workspace
    pipeline: str
    session_id: str
    model: str | None = None
    limits: Timeouts = Timeouts()
    project: str = ""
    budget: str = ""
    """The work order's own, as it is written; empty where it has none."""
    pipeline_budget: str = ""

    @property
    def name(self) -> str:
        """What people and folders call it, beside the steps."""
        return SUMMARY


class SessionSummary(Wire):
    """What the question for a summary came to; the summary itself stays on its host's disk."""

    kept_bytes: int = 0
    """How long it is; 0: there is none, and `warning` says why."""
    warning: Annotated[str, Field(max_length=500)] = ""
    model: str | None = None
    """The model that was asked, if its CLI reports it."""
    usage: Usage = Usage()
