"""What every face answers: the same objects on the command line, over HTTP and to an agent."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ConfigDict, Field

from septet.contracts.amounts import Spending
from septet.contracts.budget import AccountView
from septet.contracts.costs import CostGroup, Estimate
from septet.contracts.limits import Tools
from septet.contracts.names import CostKey, Stage
from septet.contracts.rework import ReworkRound
from septet.contracts.task import Move, Task, TaskError, TaskStep
from septet.contracts.views import AgentRun, DiffView, KeptSnapshot, LogEntry, NetworkRequest, PlanView
from septet.contracts.wire import Wire


class Reply(Wire):
    """What went well."""

    model_config = ConfigDict(serialize_by_alias=True)

    ok: Literal[True] = True


class PagedReply(Reply):
    """A list, which may have more than was asked for."""

    next: str | None = Field(default=None, exclude_if=lambda where: where is None)
    """Where the list goes on: what to ask for as `after`; left out where there is no more."""


class BudgetReply(Reply):
    """A budget: what each word on one answers."""

    budget: AccountView


class RaiseReply(BudgetReply):
    """A budget that was to be raised."""

    is_raised: bool
    """Whether the amount was added: not if the limit was no longer the expected one, as where it came before."""


class BudgetsReply(PagedReply):
    """The budgets of an installation: those of the day and of projects first."""

    budgets: tuple[AccountView, ...]


class CostsReply(Reply):
    """What work orders have cost, by what was asked for."""

    by: CostKey
    since: str = ""
    """The first week that counts: `2026-W40`; empty for all that is known."""
    costs: tuple[CostGroup, ...] = ()
    total: Spending = Spending()
    scripted: bool = False
    """Whether the scripted agent has a part in it, whose tokens and dollars are made up."""


class TaskReply(Reply):
    """A work order: what every start, decision and move answers."""

    task: Task


class StartReply(TaskReply):
    """A work order that was started, or put on the board."""

    estimate: Estimate | None = None
    """What it will cost."""


class DetailReply(TaskReply):
    """A work order with its agent runs and the stages it went through."""

    runs: tuple[AgentRun, ...] = ()
    """On the host that is asked, oldest first."""
    refused_in_setup: tuple[str, ...] = ()
    """Hosts that the sandbox of its workspace's set-up there did not let through: `name:port`, each once."""
    history: tuple[Move, ...] = ()
    waiting_for: str | None = None
    """What it is waiting for right now; `None` if nothing."""
    fails_on_base: tuple[str, ...] = ()
    """Checks of the repository that fail on its base commit already, as far as the host that is asked knows; none
    once they have passed on its commit."""
    base: str | None = None
    """The branch that it started from; `None` before it began, and where another host has its workspace."""
    estimate: Estimate | None = None
    """While it waits with its plan: what the rest of it will cost."""


class StepsReply(Reply):
    """The steps of a work order."""

    steps: tuple[TaskStep, ...] = ()
    refused_hosts: tuple[str, ...] = ()
    """Of its set-up and its runs on the host that is asked: `name:port`, each once."""
    rounds: tuple[ReworkRound, ...] = ()
    """What the agent did on its pull request since."""


class TasksReply(PagedReply):
    """Work orders, newest first: the open ones before the closed ones. Their steps are left out."""

    tasks: tuple[Task, ...] = ()


class BoardSummary(Wire):
    """The board in four numbers."""

    total: int = 0
    in_progress: int = 0
    blocked: int = 0
    completed: int = 0
    """Those whose status is `completed`, whatever became of the pull request."""


class BoardReply(PagedReply):
    """The work orders by stage. A row has all of the work order but its steps; its description is cut."""

    project: str | None = None
    """The one that was asked for; `None`: all."""
    stages: dict[Stage, tuple[Task, ...]]
    """All stages, in order, with the tasks of this page."""
    counts: dict[Stage, int]
    """In total, not only on this page."""
    summary: BoardSummary


class LogsReply(PagedReply):
    """What the agents of a work order said and did."""

    log_entries: tuple[LogEntry, ...] = ()
    total: int = 0
    """How many there are so far, on all pages."""


class NetworkReply(Reply):
    """What the agents and checks of a work order asked of the network, on the host that is asked."""

    requests: tuple[NetworkRequest, ...] = ()
    total: int = 0
    """How many there are so far, on all pages."""
    is_cut: bool = False
    """Whether a run was refused more requests than its log has lines for: some are only counted."""


class RescuesReply(Reply):
    """What was kept."""

    rescues: tuple[KeptSnapshot, ...] = ()


class RestoredReply(Reply):
    """A snapshot that was restored."""

    rescue: KeptSnapshot
    restored_to: str
    """The folder, on the host that was asked."""


class PlanReply(Reply):
    """A work order's plan."""

    plan: PlanView
    plan_sha256: str | None = None
    """The SHA-256 that a decision on the plan names."""


class DiffReply(Reply):
    """What a work order has changed."""

    diff: DiffView


RUNNING: Final = "running"
NOBODY_WORKS: Final = "nobody works on it"
"""How a work order stands with a step that has begun."""


class WatchReply(TaskReply):
    """A work order at one moment, with what this host sees of its agent and its workspace."""

    running_step: str = ""
    """Empty between two steps."""
    standing: str = RUNNING
    """How it stands with that step: it is running, or nobody works on it."""
    waiting_for: str | None = None
    """What it is waiting for right now; `None` if nothing."""
    doing: LogEntry | None = None
    """The agent's tool call that is still running."""
    tokens: int = 0
    """Of all kinds, including those of the current agent run."""
    cost_usd: float | None = None
    """Of the finished steps, where the agents say."""
    elapsed_seconds: float = 0.0
    """Since it was created, or until it was closed."""
    plan: PlanView | None = None
    """`None` if there is none yet, or none on this host; the same for `diff`."""
    diff: DiffView | None = None
    log_entries: tuple[LogEntry, ...] = ()
    """What was said and done since the last look; at the first look, the latest entries."""
    elsewhere: str = ""
    """The id of the host that has its agent and its workspace; empty where the host that is asked has them."""

    @property
    def unseen(self) -> str:
        """What cannot be seen here, and where it can; empty where all can."""
        if not self.elsewhere:
            return ""
        what = "What its agent does, its plan and its changes are not on this host"
        return f"{what}. On host {self.elsewhere}, run: septet watch {self.task.id}"


class ErrorReply(Wire):
    """What did not go well, and how to go on."""

    ok: Literal[False] = False
    error: TaskError


class DryRunStep(Wire):
    """One step as it would run."""

    step: str
    agent: str
    model: str | None = None
    """The model that is asked for; the agent's own default when absent."""
    tools: Tools
    wall_seconds: float
    idle_seconds: float
    turns: int
    commands: tuple[str, ...]
    """The files of its prompt: the plan has one for each class of issue."""
    built_in: bool
    """Whether all of them are Septet's own."""


class DryRunReply(Reply):
    """A work order that was not started."""

    repository: str
    base_branch: str
    base_sha: str
    issue_number: str = ""
    title: str = ""
    agent: str
    sandbox: str = ""
    """What confines agents where they work: `bwrap` or `none`; empty where no worker tells."""
    approve_plan: bool = False
    """Whether it waits for a person after planning."""
    plan_only: bool = False
    """Whether it ends with its plan."""
    setup: tuple[str, ...] = ()
    """Of the repository, in each workspace before its first agent."""
    setup_seconds: float = 0.0
    """The time that all of them have together."""
    checks: tuple[str, ...] = ()
    """Of the repository, before a commit."""
    check_seconds: float
    """The time that each of them has."""
    steps: tuple[DryRunStep, ...]
    estimate: Estimate | None = None
    """What it would cost."""
    budgets: Mapping[str, str] = Field(default_factory=dict)
    """The limits that would hold, by whose budget it is: `work order`, `project/o/r`, `day`."""
    unused_settings: str = ""
    """That the checkout's file of settings is not the one that is read, and what helps."""
