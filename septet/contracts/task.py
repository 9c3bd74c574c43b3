"""The work order as command line, HTTP, MCP and queries show it.

A notification reports to people that a work order needs a person, has failed or is completed.
"""

from collections.abc import Mapping
from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue

from septet.contracts.amounts import BudgetWait
from septet.contracts.facts import FileChange, KeyFinding, Rescue, Usage, tell_findings
from septet.contracts.names import Stage, Status
from septet.contracts.rework import ReworkState
from septet.contracts.wire import Wire


class TaskStep(Wire):
    """One step of a work order, as every interface shows it."""

    step: str
    agent_name: str
    agent: str
    login: str = ""
    """The name of the further login that the step's agent used; empty for the worker's own login."""
    success: bool
    output: str | None = None
    """The step's `result_text`."""
    result_json: JsonValue = None
    error_message: str | None = None
    duration_seconds: float = 0.0
    session_id: str | None = None
    timestamp: str = ""
    ended_at: str = ""
    """The time at which the workflow received the result; later than the agent's end if no worker ran when the
    agent ended."""
    attempts: int = 1
    """The number of agent starts, and of requests for the answer."""
    parsed_by: str | None = None
    recovered_by: str | None = None
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    files_changed: tuple[FileChange, ...] = ()
    rescue: Rescue | None = None
    """The last rescue of the step."""
    checks_passed: int = 0
    """The number of the repository's checks that passed on the step's commit."""

    @property
    def reading(self) -> str:
        """How the worker read the step's answer, in words; empty for the usual way."""
        match self.parsed_by:
            case None | "structured" | "json":
                return ""
            case "fence" | "embedded":
                return "read from JSON in its text"
            case "mended":
                return "read from mended JSON"
            case _:
                return "read from its text"


class TaskError(Wire):
    """Why a work order failed, and the remedy."""

    type: str
    message: str
    remedy: str = ""

    def of(self, order_id: str) -> Self:
        """Return the error with the work order's id filled into the commands of its remedy."""
        remedy = self.remedy.replace("`septet retry`", f"`septet retry {order_id}`")
        for command in ("septet retry", "septet rescue list"):
            remedy = remedy.replace(f"{command} ID", f"{command} {order_id}")
        return self.model_copy(update={"remedy": remedy})


MOVED_TO_BLOCKED: Final = "Blocked"
"""The type of the error of a work order that a person moved to blocked."""


class Move(Wire):
    """One move of a work order on the board: both stages, the time, the person or `septet`, and the reason."""

    model_config = ConfigDict(serialize_by_alias=True)

    when: str
    who: str = "septet"
    came_from: str = Field(default="", alias="from")
    to: str
    why: str = ""


class Task(Wire):
    """A work order, which is also the task on the board."""

    id: str
    project: str = ""
    title: str = ""
    description: str = ""
    status: Status = Status.PENDING
    stage: Stage = Stage.TRIAGED
    priority: int = 3
    impact: int = 3
    effort: int = 3
    score: int = 3
    assigned_agent: str | None = None
    lease_until: str | None = None
    """Always `None`, because Temporal itself leases steps to workers; programs that read the task expect the
    key."""
    source: str = "text"
    """The origin of the issue: `github`, `local` or `text`."""
    external_id: str = ""
    """The issue's number on its forge, or its key on its tracker; the field has the name that other boards use."""
    repository_url: str = ""
    issue_number: str = ""
    issue_class: str | None = None
    plan_path: str | None = None
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file, which a decision on the plan names."""
    plan_bytes: int | None = None
    """The size of the plan's file in bytes, for the estimate: the remaining steps of a longer plan cost more."""
    branch_name: str | None = None
    commit_sha: str | None = None
    pr_url: str | None = None
    usage: Usage = Usage()
    rescues: tuple[Rescue, ...] = ()
    after: tuple[str, ...] = ()
    """The work orders that must end before this work order starts."""
    findings: tuple[KeyFinding, ...] = ()
    """The findings that wait for your decision: possible keys, protected paths, and a reader's suspicions."""
    budget: BudgetWait | None = None
    """The budget that the work order waits for."""
    error: TaskError | None = None
    unconfined: str = ""
    """A warning if no sandbox confined the agents; empty otherwise."""
    rework: ReworkState | None = None
    """The rounds of the agent on the pull request; `None` if no agent follows the pull request."""
    stuck: str | None = None
    """The reason why no worker can continue the work order, with a remedy; clients find the reason, and no
    workflow reports it."""
    created_at: str = ""
    updated_at: str = ""
    steps: tuple[TaskStep, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether the work order has ended; only a person can let it continue."""
        return self.status in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}

    @property
    def waits_for_a_decision(self) -> bool:
        """Whether the work order waits for a person's decision about its plan."""
        is_waiting = self.status is Status.WAITING and self.stage is Stage.EXECUTING
        return is_waiting and not self.findings and self.budget is None

    @property
    def left_beside_plan(self) -> tuple[Rescue, ...]:
        """The rescues of files that agents wrote besides the plan; later steps do not get these files."""
        return tuple(rescue for rescue in self.rescues if rescue.is_left_by_planner)

    @property
    def earlier_tokens(self) -> int:
        """The work order's tokens that no element of `steps` contains: those of earlier tries."""
        return max(self.usage.tokens - sum(row.usage.tokens for row in self.steps), 0)

    @property
    def checks_passed(self) -> int:
        """The number of the repository's checks that passed on the work order's last commit."""
        return next((row.checks_passed for row in reversed(self.steps) if row.checks_passed), 0)

    @property
    def question(self) -> str:
        """What a person can do about a wait for a budget, a host or findings; empty without such a wait."""
        if self.budget is not None:
            return f"{self.budget.message} {self.budget.remedy}".strip()
        return self.host_wait or self.findings_question

    @property
    def host_wait(self) -> str:
        """The host that the work order waits for, with a remedy; empty if it waits for no host."""
        if self.error is None or (self.status, self.stage) != (Status.WAITING, Stage.BLOCKED):
            return ""
        return f"{self.error.message} {self.error.remedy}".strip()

    @property
    def word(self) -> str:
        """The one word that shows the state to people: a status, `stuck`, `closed`, or a final stage."""
        if self.stuck:
            return "stuck"
        if self.status is not Status.COMPLETED:
            return self.status.value
        is_moved = self.error is not None and self.error.type == MOVED_TO_BLOCKED
        return "closed" if self.stage is Stage.BLOCKED and not is_moved else self.stage.value

    @property
    def has_plan_alone(self) -> bool:
        """Whether the work order has ended with only its plan, as requested; a retry continues from there."""
        return (self.status, self.stage, self.pr_url) == (Status.COMPLETED, Stage.DONE, None)

    @property
    def plan_answer(self) -> str:
        """A sentence with the command that continues after the plan; empty unless `has_plan_alone`."""
        return f"Its plan is ready: septet retry {self.id} continues with it." if self.has_plan_alone else ""

    @property
    def findings_question(self) -> str:
        """The question to a person about findings, with the commands that answer; empty without findings."""
        if not self.findings:
            return ""
        allowing = " ".join(f"--finding {finding.id}" for finding in self.findings if finding.id)
        approve = f"`septet approve {self.id} {allowing}` allows it; " if allowing else ""
        reject = f"`septet reject {self.id} --feedback …` has the agent remove it"
        return f"{tell_findings(self.findings)}. {approve}{reject}."


UNCONFINED: Final[Mapping[str, str]] = {
    "none": (
        "agents ran without a sandbox. To confine them, install bubblewrap (`apt-get install bubblewrap`); "
        "`septet doctor` says what else is missing."
    ),
}
"""The warnings about agents without a sandbox, by the kind of sandbox in an agent run's record."""
NOTIFIES: Final = "notifies"
"""The ability of a host to send notifications; a work order on any other host schedules none."""
NotificationKind = Literal["waiting", "failed", "completed"]


class Notification(Wire):
    """One notification; repeated deliveries have the same id."""

    id: str
    """The id of the workflow that sends the notification: `<work order>/tell/<time>`."""
    kind: NotificationKind
    time: str
    """The time of the event: ISO 8601, UTC."""
    work_order_id: str
    title: str = ""
    project: str = ""
    repository_url: str = ""
    issue_number: str = ""
    status: Status
    stage: Stage
    reason: str = ""
    """Why the work order needs a person, or why it failed."""
    remedy: str = ""
    """The advice to a person: what to do next, with the commands; empty if no action is needed."""
    plan_path: str | None = None
    plan_sha256: str | None = None
    branch_name: str | None = None
    pr_url: str | None = None
    task_queue: str
    """The queue of the host that sends the notification."""
