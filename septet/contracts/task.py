"""The work order object: one shape for CLI, HTTP, MCP and query."""

from collections.abc import Mapping
from typing import Final, Self

from pydantic import ConfigDict, Field, JsonValue

from septet.contracts.budget import BudgetWait
from septet.contracts.facts import FileChange, KeyFinding, Rescue, Usage, tell_findings
from septet.contracts.names import Stage, Status
from septet.contracts.rework import ReworkState
from septet.contracts.wire import Wire

_USUAL_READINGS: Final = (None, "structured", "json")
_FROM_TEXT: Final = "read from its text"
_READINGS: Final = {
    "fence": "read from JSON in its text", "embedded": "read from JSON in its text",
    "mended": "read from mended JSON",
}  # fmt: skip


class TaskStep(Wire):
    """One step of a work order, as every interface shows it."""

    step: str
    agent_name: str
    agent: str
    login: str = ""
    """The name of the further login that its agent used; empty for the worker's own login."""
    success: bool
    output: str | None = None
    """The step's `result_text`."""
    result_json: JsonValue = None
    error_message: str | None = None
    duration_seconds: float = 0.0
    session_id: str | None = None
    timestamp: str = ""
    ended_at: str = ""
    """The time at which the workflow took the result; later than the agent's end if no worker ran then."""
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
    """The number of the repository's checks that passed on its commit."""

    @property
    def reading(self) -> str:
        """How its answer was read, in words; empty for the usual way."""
        return "" if self.parsed_by in _USUAL_READINGS else _READINGS.get(self.parsed_by, _FROM_TEXT)


class TaskError(Wire):
    """Why a work order failed, and how to continue."""

    type: str
    message: str
    remedy: str = ""

    def of(self, order_id: str) -> Self:
        """Return the error with the work order's id in the commands of its remedy."""
        remedy = self.remedy.replace("`septet retry`", f"`septet retry {order_id}`")
        for command in ("septet retry", "septet rescue list"):
            remedy = remedy.replace(f"{command} ID", f"{command} {order_id}")
        return self.model_copy(update={"remedy": remedy})


MOVED_TO_BLOCKED: Final = "Blocked"
"""The type of the error of a work order that a person moved to blocked."""


class Move(Wire):
    """One entry of a work order's history: from which stage to which, when, by whom and why."""

    model_config = ConfigDict(serialize_by_alias=True)

    when: str
    who: str = "septet"
    came_from: str = Field(default="", alias="from")
    to: str
    why: str = ""


class Task(Wire):
    """A work order: also the task on the board."""

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
    """Always `None`: Temporal itself leases steps to workers. Readers of the task's shape expect the key."""
    source: str = "text"
    """The origin of the issue: `github`, `local` or `text`."""
    external_id: str = ""
    """The issue's number on its forge, as text: `issue_number` under the name that other boards use."""
    repository_url: str = ""
    issue_number: str = ""
    issue_class: str | None = None
    plan_path: str | None = None
    plan_sha256: str | None = None
    """The SHA-256 of the plan's file, which a decision on the plan names."""
    plan_bytes: int | None = None
    """The size of the plan's file in bytes: the remaining steps of a longer plan cost more."""
    branch_name: str | None = None
    commit_sha: str | None = None
    pr_url: str | None = None
    usage: Usage = Usage()
    rescues: tuple[Rescue, ...] = ()
    after: tuple[str, ...] = ()
    """Work orders that must end before this one starts."""
    findings: tuple[KeyFinding, ...] = ()
    """The findings in its work that wait for your decision: possible keys, and protected paths."""
    budget: BudgetWait | None = None
    """The budget that it waits for."""
    error: TaskError | None = None
    unconfined: str = ""
    """A warning if no sandbox confined its agents; empty otherwise."""
    rework: ReworkState | None = None
    """How its agent follows the pull request; `None` if it does not."""
    stuck: str | None = None
    """Why no worker can continue it, and what helps; clients find this out, and no workflow reports it."""
    created_at: str = ""
    updated_at: str = ""
    steps: tuple[TaskStep, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether it has ended: nothing happens to it any more by itself."""
        return self.status in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}

    @property
    def waits_for_a_decision(self) -> bool:
        """Whether it waits with its plan for a person's decision."""
        is_waiting = self.status is Status.WAITING and self.stage is Stage.EXECUTING
        return is_waiting and not self.findings and self.budget is None

    @property
    def left_beside_plan(self) -> tuple[Rescue, ...]:
        """The rescues of files that agents left beside its plan; they are not implemented."""
        return tuple(rescue for rescue in self.rescues if rescue.is_left_by_planner)

    @property
    def earlier_tokens(self) -> int:
        """The number of its tokens that no step's row contains, because earlier tries used them."""
        return max(self.usage.tokens - sum(row.usage.tokens for row in self.steps), 0)

    @property
    def checks_passed(self) -> int:
        """The number of the repository's checks that passed on its last commit."""
        return next((row.checks_passed for row in reversed(self.steps) if row.checks_passed), 0)

    @property
    def question(self) -> str:
        """Its question to a person, except about its plan, with the command that answers; empty without one."""
        if self.budget is not None:
            return f"{self.budget.message} {self.budget.remedy}".strip()
        return self.host_wait or self.findings_question

    @property
    def host_wait(self) -> str:
        """The host that it waits for, and what helps; empty if it waits for none."""
        if self.error is None or (self.status, self.stage) != (Status.WAITING, Stage.BLOCKED):
            return ""
        return f"{self.error.message} {self.error.remedy}".strip()

    @property
    def word(self) -> str:
        """The one word for its state on the board, its card and its page; merged and closed work orders differ."""
        if self.stuck:
            return "stuck"
        if self.status is not Status.COMPLETED:
            return self.status.value
        is_moved = self.error is not None and self.error.type == MOVED_TO_BLOCKED
        return "closed" if self.stage is Stage.BLOCKED and not is_moved else self.stage.value

    @property
    def has_plan_alone(self) -> bool:
        """Whether only a plan was requested, and the plan is ready: a retry continues with it."""
        return (self.status, self.stage, self.pr_url) == (Status.COMPLETED, Stage.DONE, None)

    @property
    def plan_answer(self) -> str:
        """The command that continues a work order with a plan alone; empty for any other work order."""
        return f"Its plan is ready: septet retry {self.id} continues with it." if self.has_plan_alone else ""

    @property
    def findings_question(self) -> str:
        """Its question to a person about its findings, with the commands that answer; empty without findings."""
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
"""By the sandbox in the record of an agent's run: the warning."""
