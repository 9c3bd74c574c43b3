"""The tools, one by one: each docstring is what an agent reads before it chooses one."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from mcp.types import ToolAnnotations
from pydantic import Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from clients.mcp.call import ADDS, ENDS, Call
from clients.operations.operations import Operations
from clients.starting.repository_path import whole_path
from clients.starting.tracked_issue import with_issue_of_page
from septet.contracts.amounts import BudgetText
from septet.contracts.budget import BudgetName, RaiseCall
from septet.contracts.costs import Since
from septet.contracts.decisions import FINDINGS_NAMED, FindingId, MoveCall, RetryCall, Sha256, Who, Words
from septet.contracts.names import CostKey, Status
from septet.contracts.order import Id, WorkOrderInput
from septet.contracts.replies import (
    BoardReply,
    BudgetsReply,
    CostsReply,
    DetailReply,
    DiffReply,
    LogsReply,
    PlanReply,
    RaiseReply,
    RescuesReply,
    RestoredReply,
    StartReply,
    StepsReply,
    TaskReply,
)
from septet.contracts.wire import Wire

Part = TypeVar("Part", bound=Wire)
_ROWS_AT_ONCE: Final = 50
_ENTRIES_AT_ONCE: Final = 50
"""An agent's context is small; it can ask for more."""
_WAIT_SECONDS: Final = 45
"""Many clients give up a call after a minute."""
_LONGEST_WAIT_SECONDS: Final = 600
_SNAPSHOT_LENGTH: Final = 200


class _OfTask(Call):
    """What is asked of one task."""

    id: Id
    """The task's id, such as wo-42, as `board`, `run` and `create_task` return it."""


class _Decision(_OfTask):
    """What is decided about one task."""

    who: Who = ""
    """Who decides, as the history shows it; this agent when absent."""
    why: Words = ""
    """The reason, as the history shows it."""


class _Start(WorkOrderInput, Call):
    """What begins with an issue."""

    hints: ClassVar[ToolAnnotations] = ADDS

    id: Id | None = None
    """The new task's id; one is made when absent."""
    again: bool = False
    """Start another one for an issue that has an open task."""

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the call with these arguments; the address of an issue's page names repository and issue."""
        return super().read(with_issue_of_page(arguments))

    def from_here(self) -> Self:
        """Return it with the whole path of a repository that is on this machine."""
        return self.model_copy(update={"repository": whole_path(self.repository)})

    async def answer(self, operations: Operations) -> StartReply:
        """Start it, or put it on the board: its stage says which."""
        return await operations.starting.start(_part_of(WorkOrderInput, self), self.id, again=self.again)


class CreateTask(_Start):
    """Put an issue on the board, without starting work on it.

    Name the repository, and either `issue` (a number on its forge) or `title` and `description` (its text); or, as
    `repository`, the address of an issue's page on its forge or in Linear. A `collected` task waits until someone
    moves it. A `triaged` task starts by itself in its turn: the best score (`priority` + `impact` - `effort`)
    first, and only when the tasks in `after` are done. Choose an `id` if you might call twice: a used id is
    refused, so nothing is created twice.
    """

    tool: ClassVar[str] = "create_task"

    stage: Literal["collected", "triaged"] = "collected"
    """Where it waits: `collected` until someone moves it, or `triaged` for its turn."""


class RunTask(_Start):
    """Start work on an issue now: a coding agent plans it, implements it and opens a pull request.

    Name the repository, and either `issue` (a number on its forge) or `title` and `description` (its text); or, as
    `repository`, the address of an issue's page on its forge or in Linear. It costs money and takes minutes: the
    answer is the task as it starts. Look at it later with `task_detail`: it is finished when `status` is completed
    (`pr_url` is the pull request), failed (`error` says why) or cancelled. Choose an `id` if you might call twice:
    a used id is refused, so nothing is started twice.
    """

    tool: ClassVar[str] = "run"

    stage: SkipJsonSchema[None] = None


class TaskDetail(_OfTask):
    """Look at one task: its state, its steps so far, its agent runs, its history, and what it waits for.

    `task.status` is pending, running, waiting, completed, failed or cancelled. If `task.stuck` is not null, it
    says why no worker can continue: tell a person. `waiting_for` says what the task waits for right now, or is
    null. Steps take minutes: look again after a while, not at once.
    """

    tool: ClassVar[str] = "task_detail"

    async def answer(self, operations: Operations) -> DetailReply:
        """Look."""
        return await operations.reading.detail(self.id)


class ShowBoard(Call):
    """See the tasks by stage (collected, triaged, executing, review, done, blocked), with the total counts.

    Rows have no steps; `task_detail` has those of one task. If there are more tasks, the answer has `next`: call
    again with it as `after`.
    """

    tool: ClassVar[str] = "board"

    project: str | None = None
    """Only the tasks of this project, such as o/r; all when absent."""
    after: str = ""
    """`next` from the previous page; omit it for the first."""
    limit: Annotated[int, Field(ge=1, le=500)] = _ROWS_AT_ONCE
    """The most tasks to return."""

    async def answer(self, operations: Operations) -> BoardReply:
        """Look."""
        return await operations.board.page(self.project, after=self.after, limit=self.limit)


class ShowSteps(_OfTask):
    """Look at just the steps of one task: what each answered, how long it took, and why it failed."""

    tool: ClassVar[str] = "steps"

    async def answer(self, operations: Operations) -> StepsReply:
        """Look."""
        return await operations.reading.steps(self.id)


class ReadLogs(_OfTask):
    """Read what the coding agents of a task said and did on this host, oldest first.

    If there are more entries, the answer has `next`: call again with it as `after`.
    """

    tool: ClassVar[str] = "logs"

    after: str = ""
    """The id of the last entry that you have; from the first one when absent."""
    limit: Annotated[int, Field(ge=1, le=1000)] = _ENTRIES_AT_ONCE
    """The most entries to return."""

    async def answer(self, operations: Operations) -> LogsReply:
        """Read."""
        return await operations.reading.logs(self.id, after=self.after, limit=self.limit)


class MoveTask(MoveCall, _OfTask):
    """Move a task on the board.

    To `executing`: a triaged task starts, a failed one continues, and one in review is worked on again with your
    `feedback`. To `triaged` or `collected`: it waits for its turn, or for a person. To `blocked`: it stops; its
    agent is ended and its work is kept. To `done`: it is merged. To `cancelled`: it ends.
    Each stage allows only some moves; a refusal lists them.
    """

    tool: ClassVar[str] = "move"
    hints: ClassVar[ToolAnnotations] = ENDS

    async def answer(self, operations: Operations) -> TaskReply:
        """Move it."""
        return await operations.decisions.move(self.id, _part_of(MoveCall, self))


class ApprovePlan(_Decision):
    """Approve the plan that a task waits with (`status` waiting, if it has `approve_plan`); it then continues.

    If it waits with `findings`, things that look like keys or changes of protected paths, approve those that
    `findings` names. Both decisions are meant for a person: approve only what a person told you to approve, or
    what is yours to decide.
    """

    tool: ClassVar[str] = "approve"
    hints: ClassVar[ToolAnnotations] = ADDS

    plan_sha256: Sha256 | None = None
    """The plan that you read, as `task_detail` shows it: any other is refused. If absent, the plan that waits."""
    findings: Annotated[tuple[FindingId, ...], Field(max_length=FINDINGS_NAMED)] = ()
    """Ids of the task's `findings` that may be pushed: no keys, and protected paths that a person allows."""

    async def answer(self, operations: Operations) -> TaskReply:
        """Approve it."""
        return await operations.decisions.approve(self.id, self.plan_sha256, self.who, self.why, self.findings)


class RejectPlan(_Decision):
    """Reject a task's plan, with your feedback: the agent plans again, and the task waits with the new plan.

    If it waits with `findings`, its coding agent removes them.
    """

    tool: ClassVar[str] = "reject"
    hints: ClassVar[ToolAnnotations] = ADDS

    feedback: Annotated[Words, Field(min_length=1)]
    """Your feedback for the planner."""
    plan_sha256: Sha256 | None = None
    """The plan that you read, as `task_detail` shows it: any other is refused. If absent, the plan that waits."""

    async def answer(self, operations: Operations) -> TaskReply:
        """Reject it."""
        return await operations.decisions.reject(self.id, self.feedback, self.plan_sha256, self.who, self.why)


class CancelTask(_Decision):
    """Cancel a task: its coding agent is stopped, and a rescue keeps its work so far."""

    tool: ClassVar[str] = "cancel"
    hints: ClassVar[ToolAnnotations] = ENDS

    async def answer(self, operations: Operations) -> TaskReply:
        """End it."""
        return await operations.decisions.cancel(self.id, self.who, self.why)


class RetryTask(RetryCall, _OfTask):
    """Continue a task that failed or was cancelled, at the step that failed.

    First do what its error's remedy says. With `from_step` it goes back to an earlier step, even if the task is
    completed; the later steps are done again.
    """

    tool: ClassVar[str] = "retry"
    hints: ClassVar[ToolAnnotations] = ADDS

    async def answer(self, operations: Operations) -> TaskReply:
        """Go on."""
        return await operations.decisions.retry(self.id, _part_of(RetryCall, self))


class ListRescues(Call):
    """List the work that was saved when an agent failed or was stopped, as snapshots on this host.

    `restore_rescue` restores one to a new folder.
    """

    tool: ClassVar[str] = "rescues"

    id: Id | None = None
    """Only those of this task; all when absent."""
    everything: bool = False
    """The checkpoints after each step too."""

    async def answer(self, operations: Operations) -> RescuesReply:
        """Look."""
        return await operations.rescues.list(self.id, everything=self.everything)


class RestoreRescue(Call):
    """Restore saved work to a new folder on the host that has it; the answer names the folder.

    Nothing is overwritten, and the task stays as it is.
    """

    tool: ClassVar[str] = "restore_rescue"
    hints: ClassVar[ToolAnnotations] = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, open_world_hint=False
    )

    snapshot: Annotated[str, Field(min_length=1, max_length=_SNAPSHOT_LENGTH)]
    """The `snapshot` of one of `rescues`."""

    async def answer(self, operations: Operations) -> RestoredReply:
        """Restore it."""
        return await operations.rescues.restore(self.snapshot)


class ReadPlan(_OfTask):
    """Read the plan of a task, with the `plan_sha256` that `approve` and `reject` take."""

    tool: ClassVar[str] = "plan"

    async def answer(self, operations: Operations) -> PlanReply:
        """Read."""
        return await operations.reading.plan(self.id)


class ReadDiff(_OfTask):
    """Read what a task has changed so far, committed or not: the files with their lines, and the patch."""

    tool: ClassVar[str] = "diff"

    async def answer(self, operations: Operations) -> DiffReply:
        """Read."""
        return await operations.reading.diff(self.id)


class WaitForTask(_OfTask):
    """Wait until a task needs someone (`status` waiting, or `stuck`) or is closed, for a limited time.

    The answer is that of `task_detail`. If its `status` is still pending or running, call again.
    """

    tool: ClassVar[str] = "wait"

    seconds: Annotated[int, Field(ge=1, le=_LONGEST_WAIT_SECONDS)] = _WAIT_SECONDS
    """The longest time to wait, in seconds."""

    async def answer(self, operations: Operations) -> DetailReply:
        """Wait, and look."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.seconds), aclosing(operations.reading.watch(self.id).looks()) as looks:
                async for look in looks:
                    if look.task.is_closed or look.task.stuck or look.task.status is Status.WAITING:
                        break
        return await operations.reading.detail(self.id)


class ShowBudgets(Call):
    """Look at the budgets: what was used of each, and which tasks wait for one that is used up.

    A task that waits for its budget has it as `task.budget`. If there are more, the answer has `next`: call again
    with it as `after`.
    """

    tool: ClassVar[str] = "budgets"

    after: str = ""
    """The `next` of the page before; the first page when absent."""

    async def answer(self, operations: Operations) -> BudgetsReply:
        """Show them."""
        return await operations.budgets.list(after=self.after)


class ShowCosts(Call):
    """See what tasks have cost so far: dollars, tokens and agent minutes, grouped by `by`.

    The answers of `run` and `create_task` estimate the cost of a new task (`estimate`), and so does `task_detail`
    while its plan waits for approval.
    """

    tool: ClassVar[str] = "costs"

    by: CostKey = "project"
    """What to group by."""
    since: Since = ""
    """Count from this week on: 2026-W40, 4w or 30d; all when absent."""
    project: Annotated[str, Field(max_length=200)] = ""
    """Only this project, such as o/r; all when absent."""

    async def answer(self, operations: Operations) -> CostsReply:
        """Add them up."""
        return await operations.costs.show(self.by, self.since, self.project)


class RaiseBudget(Call):
    """Raise a budget by an amount, so that the tasks that wait for it continue.

    It lets agents cost more: ask a person first.
    """

    tool: ClassVar[str] = "raise_budget"
    hints: ClassVar[ToolAnnotations] = ADDS

    budget: BudgetName
    """`day`, `project/NAME`, `pipeline/ID`, or the id of a task."""
    amount: BudgetText
    """The amount to add, such as 5usd, 2Mtok or 90min."""
    step: Annotated[str, StringConstraints(max_length=40)] = ""
    """The step whose limit is raised; the whole budget when absent."""
    expected: BudgetText | None = None
    """The limit as you saw it: nothing is added to another one, and `is_raised` is false, so that you can safely
    repeat the call."""
    who: Who = ""
    """Who decides; this agent when absent."""

    async def answer(self, operations: Operations) -> RaiseReply:
        """Raise it."""
        call = RaiseCall(limit=self.amount, step=self.step, who=self.who, expected=self.expected or "")
        return await operations.budgets.raise_limit(self.budget, call)


def _part_of(kind: type[Part], call: Part) -> Part:
    """Return what an operation takes of a call."""
    return kind(**{name: getattr(call, name) for name in kind.model_fields})


TOOLS: Final[tuple[type[Call], ...]] = (
    *(CreateTask, RunTask, TaskDetail, ShowBoard, MoveTask, ApprovePlan, RejectPlan),
    *(ReadPlan, ReadDiff, ShowSteps, ReadLogs, WaitForTask, CancelTask, RetryTask, ListRescues, RestoreRescue),
    *(ShowBudgets, RaiseBudget, ShowCosts),
)
