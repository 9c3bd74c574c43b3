"""The replies of every interface: command line, HTTP and MCP return the same objects."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ConfigDict, Field

from septet.contracts.amounts import Spending
from septet.contracts.costs import CostGroup, Estimate
from septet.contracts.host_files import AgentRun, DiffView, KeptSnapshot, LogEntry, NetworkRequest, PlanView
from septet.contracts.names import CostKey, Stage
from septet.contracts.order import Tools
from septet.contracts.rework import ReworkRound
from septet.contracts.task import Move, Task, TaskError, TaskStep
from septet.contracts.wire import Wire


class Reply(Wire):
    """The reply to a successful request."""

    model_config = ConfigDict(serialize_by_alias=True)

    ok: Literal[True] = True


class PagedReply(Reply):
    """One page of a list."""

    next: str | None = Field(default=None, exclude_if=lambda where: where is None)
    """The cursor of the next page, to send as `after`; absent on the last page."""


class CostsReply(Reply):
    """The costs of work orders, added up by the requested key."""

    by: CostKey
    since: str = ""
    """The first week whose costs count, such as `2026-W40`; empty for all weeks."""
    costs: tuple[CostGroup, ...] = ()
    total: Spending = Spending()
    scripted: bool = False
    """Whether the costs contain costs of the scripted agent, whose tokens and dollars are made up."""


class TaskReply(Reply):
    """The reply to every start, decision and move of a work order."""

    task: Task


class StartReply(TaskReply):
    """A work order that was started, or put on the board."""

    estimate: Estimate | None = None
    """The expected cost."""


class DetailReply(TaskReply):
    """A work order with its agent runs and its moves on the board."""

    runs: tuple[AgentRun, ...] = ()
    """The agent runs on the host that replies, oldest first."""
    refused_in_setup: tuple[str, ...] = ()
    """The addresses that the sandbox refused to the workspace's set-up on the host that replies: `name:port`, each
    once."""
    history: tuple[Move, ...] = ()
    waiting_for: str | None = None
    """The event or decision that the work order waits for now; `None` if the work order does not wait."""
    fails_on_base: tuple[str, ...] = ()
    """The repository's checks that already fail on the base commit, if the host that replies knows them; empty
    once the checks passed on the work order's commit."""
    base: str | None = None
    """The branch from which the work order started; `None` before the start, and if another host has the
    workspace."""
    estimate: Estimate | None = None
    """The expected cost of the remaining steps, while the work order waits with its plan."""


class StepsReply(Reply):
    """The steps of a work order."""

    steps: tuple[TaskStep, ...] = ()
    refused_hosts: tuple[str, ...] = ()
    """The addresses that the sandboxes refused to set-up and runs on the host that replies: `name:port`, each
    once."""
    rounds: tuple[ReworkRound, ...] = ()
    """The rounds of the agent on the pull request."""


class TasksReply(PagedReply):
    """Work orders without their steps: open ones before closed ones, newest first."""

    tasks: tuple[Task, ...] = ()


class BoardSummary(Wire):
    """How many work orders are on the board, in all and by state."""

    total: int = 0
    in_progress: int = 0
    blocked: int = 0
    completed: int = 0
    """The number of work orders with the status `completed`, in any state of the pull request."""


class BoardReply(PagedReply):
    """The work orders by stage. A row has no steps, and its description is cut."""

    project: str | None = None
    """The requested project; `None` for all projects."""
    stages: dict[Stage, tuple[Task, ...]]
    """All stages in order, with the work orders of this page."""
    counts: dict[Stage, int]
    """The number of work orders on all pages, by stage."""
    summary: BoardSummary


class LogsReply(PagedReply):
    """The log of a work order's agents."""

    log_entries: tuple[LogEntry, ...] = ()
    total: int = 0
    """The number of entries up to now, on all pages."""


class NetworkReply(Reply):
    """The network requests of a work order's agents and checks on the host that replies."""

    requests: tuple[NetworkRequest, ...] = ()
    total: int = 0
    """The number of entries up to now, on all pages."""
    is_cut: bool = False
    """Whether the list lacks refused requests that were only counted, because a run's log was full."""


class RescuesReply(Reply):
    """The snapshots that a person can restore."""

    rescues: tuple[KeptSnapshot, ...] = ()


class RestoredReply(Reply):
    """A snapshot that was restored."""

    rescue: KeptSnapshot
    restored_to: str
    """The folder of the restored files, on the host that replied."""


class PlanReply(Reply):
    """A work order's plan."""

    plan: PlanView
    plan_sha256: str | None = None
    """The SHA-256 of the plan, which a decision on the plan names."""


class DiffReply(Reply):
    """The changes of a work order."""

    diff: DiffView


RUNNING: Final = "running"
NOBODY_WORKS: Final = "nobody works on it"
"""The two values of `WatchReply.standing`: whether any process works on the running step."""


class WatchReply(TaskReply):
    """The current state of a work order, with the facts about its agent and workspace on this host."""

    running_step: str = ""
    """The running step; empty between two steps."""
    standing: str = RUNNING
    """The state of the running step: `running`, or `nobody works on it`."""
    waiting_for: str | None = None
    """The event or decision that the work order waits for now; `None` if the work order does not wait."""
    doing: LogEntry | None = None
    """The agent's tool call that is still running."""
    tokens: int = 0
    """The tokens of all kinds, including those of the current agent run."""
    cost_usd: float | None = None
    """The cost of the finished steps in US dollars, if the agents report it."""
    elapsed_seconds: float = 0.0
    """The seconds from the work order's creation until now, or until its end."""
    plan: PlanView | None = None
    """The plan; `None` before the plan exists, and if this host does not have the plan. The same holds for
    `diff`."""
    diff: DiffView | None = None
    log_entries: tuple[LogEntry, ...] = ()
    """The log entries since the last reply; in the first reply, the latest entries."""
    elsewhere: str = ""
    """The id of the host that has the work order's agent and workspace; empty if the host that replies has
    them."""

    @property
    def unseen(self) -> str:
        """A note that another host has further facts, with the command that shows them; empty if none has."""
        if not self.elsewhere:
            return ""
        what = "What its agent does, its plan and its changes are not on this host"
        return f"{what}. On host {self.elsewhere}, run: septet watch {self.task.id}"


class ErrorReply(Wire):
    """The reply to a failed request: the error and its remedy."""

    ok: Literal[False] = False
    error: TaskError


class DryRunStep(Wire):
    """One step of a work order that was not started."""

    step: str
    agent: str
    model: str | None = None
    """The model; the agent's default when absent."""
    tools: Tools
    wall_seconds: float
    idle_seconds: float
    turns: int
    commands: tuple[str, ...]
    """The files of the step's prompt; the step that plans has one file for each class of issue."""
    built_in: bool
    """Whether Septet provides all files in `commands`."""


class DryRunReply(Reply):
    """A work order that was not started."""

    repository: str
    base_branch: str
    base_sha: str
    issue_number: str = ""
    title: str = ""
    agent: str
    sandbox: str = ""
    """The sandbox of agents on their host: `bwrap` or `none`; empty if no worker reports it."""
    approve_plan: bool = False
    """Whether the work order would wait for a person after planning."""
    plan_only: bool = False
    """Whether the work order would end with its plan."""
    setup: tuple[str, ...] = ()
    """The repository's set-up commands, which run in each workspace before its first agent."""
    setup_seconds: float = 0.0
    """The most seconds for all set-up commands together."""
    checks: tuple[str, ...] = ()
    """The repository's checks, which run before a commit."""
    check_seconds: float
    """The most seconds for each check."""
    steps: tuple[DryRunStep, ...]
    estimate: Estimate | None = None
    """The expected cost."""
    budgets: Mapping[str, str] = Field(default_factory=dict)
    """The limits that would apply, by the owner of the budget, such as `work order`, `project/o/r` or `day`."""
    unused_settings: str = ""
    """A note with a remedy, if Septet does not read the settings file of the checkout; otherwise empty."""
