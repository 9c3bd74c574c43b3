"""The operations on work orders and on the board, for programs and agents."""

import asyncio
from contextlib import aclosing, suppress
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from clients.operations.operation import (
    FAILED_STEP,
    NO_REASON,
    WAITING_PLAN,
    After,
    ApproveBody,
    CancelBody,
    FewRows,
    Limit,
    Operation,
    OrderId,
    RejectBody,
    RestoreBody,
)
from clients.operations.operations import Operations
from clients.starting.tracked_issue import with_issue_of_page
from clients.temporal.board import TASKS_AT_ONCE
from septet.contracts.decisions import MoveCall, RetryCall
from septet.contracts.names import Status
from septet.contracts.order import Id, WorkOrderInput
from septet.contracts.replies import (
    BoardReply,
    DetailReply,
    DiffReply,
    LogsReply,
    PlanReply,
    RescuesReply,
    RestoredReply,
    StartReply,
    StepsReply,
    TaskReply,
)

NewId = Annotated[Id | None, Field(description="The new task's id; one is made when absent.")]
Again = Annotated[bool, Field(description="Start another one for an issue that has an open task.")]
ProjectFilter = Annotated[str, StringConstraints(pattern=r'^[^"\\\x00-\x1f]{1,200}$')]
_SECONDS: Final = 45
"""The default for the longest wait, in seconds: many clients wait at most a minute for an answer."""


async def create_task(
    operations: Operations, order: WorkOrderInput, order_id: NewId = None, *, again: Again = False
) -> StartReply:
    """Put an issue on the board, without starting work on it.

    Name the repository, and either `issue` (a number on its forge) or `title` and `description` (its text); or, as
    `repository`, the address of an issue's page on its forge or in Linear. A `collected` task waits until someone
    moves it. A `triaged` task starts by itself in its turn: the best score (`priority` + `impact` - `effort`)
    first, and only when the tasks in `after` are done. Choose an `id` if you might call twice: a used id is
    refused, so nothing is created twice.
    """
    return await operations.starting.start(order, order_id, again=again)


async def run(
    operations: Operations, order: WorkOrderInput, order_id: NewId = None, *, again: Again = False
) -> StartReply:
    """Start work on an issue now: a coding agent plans it, implements it and opens a pull request.

    Name the repository, and either `issue` (a number on its forge) or `title` and `description` (its text); or, as
    `repository`, the address of an issue's page on its forge or in Linear. Work costs money and takes minutes: the
    answer is the task as it starts. Look at it later with `task_detail`: it is finished when `status` is completed
    (`pr_url` is the pull request), failed (`error` says why) or cancelled. Choose an `id` if you might call twice:
    a used id is refused, so nothing is started twice.
    """
    return await operations.starting.start(order, order_id, again=again)


async def get_detail(operations: Operations, order_id: OrderId) -> DetailReply:
    """Show a task's state, its steps so far, its agent runs, its history, and what the task waits for.

    `task.status` is pending, running, waiting, completed, failed or cancelled. If `task.stuck` is not null, it
    says why no worker can continue: tell a person. `waiting_for` says what the task waits for right now, or is
    null. Steps take minutes: look again after a while, not at once.
    """
    return await operations.reading.detail(order_id)


async def get_board(
    operations: Operations, project: ProjectFilter | None = None, limit: Limit = TASKS_AT_ONCE, after: After = ""
) -> BoardReply:
    """Show a page of the tasks by stage (collected, triaged, executing, review, done, blocked), with the counts.

    Rows have no steps; `task_detail` has those of one task. If there are more tasks, the answer has `next`: call
    again with it as `after`.
    """
    return await operations.board.page(project, after=after, limit=limit)


async def move(operations: Operations, order_id: OrderId, call: MoveCall) -> TaskReply:
    """Move a task on the board; a refusal lists the stages that the task may move to.

    To `executing`: a triaged task starts, a failed one continues, and one in review is worked on again with your
    `feedback`. To `triaged` or `collected`: the task waits for its turn, or for a person. To `blocked`: it stops;
    its agent is ended and its work is kept. To `done`: it is merged. To `cancelled`: it ends.
    """
    return await operations.decisions.move(order_id, call)


async def approve(operations: Operations, order_id: OrderId, call: ApproveBody = WAITING_PLAN) -> TaskReply:
    """Approve a task's plan, or the named findings, for which the task waits; it then continues.

    A task with `approve_plan` waits (`status` waiting) with its plan. If the task has `findings` (things that look
    like keys, and changes of protected paths), name in `findings` those that you approve. Both decisions are meant
    for a person: approve only what a person told you to approve, or what is yours to decide.
    """
    return await operations.decisions.approve(order_id, call.plan_sha256, call.who, call.why, call.findings)


async def reject(operations: Operations, order_id: OrderId, call: RejectBody) -> TaskReply:
    """Reject a task's plan, or the findings in its work, with feedback for the agent.

    The agent plans again, and the task waits with the new plan; or the agent removes the findings.
    """
    return await operations.decisions.reject(order_id, call.feedback, call.plan_sha256, call.who, call.why)


async def get_plan(operations: Operations, order_id: OrderId) -> PlanReply:
    """Show a task's plan from this host, with the `plan_sha256` that decisions on the plan take."""
    return await operations.reading.plan(order_id)


async def get_diff(operations: Operations, order_id: OrderId) -> DiffReply:
    """Show the files and the patch of a task's changes so far, committed or not, from this host."""
    return await operations.reading.diff(order_id)


async def steps(operations: Operations, order_id: OrderId) -> StepsReply:
    """Show just the steps of one task: what each answered, how long it took, and why it failed."""
    return await operations.reading.steps(order_id)


async def logs(
    operations: Operations,
    order_id: OrderId,
    after: Annotated[str, Field(description="The id of the last entry that you have; all when absent.")] = "",
    limit: Annotated[int, Field(ge=1, le=1000, description="The most entries to return.")] = 50,
) -> LogsReply:
    """Read what the coding agents of a task said and did on this host, oldest first.

    If there are more entries, the answer has `next`: call again with it as `after`.
    """
    return await operations.reading.logs(order_id, after=after, limit=limit)


async def wait(
    operations: Operations,
    order_id: OrderId,
    seconds: Annotated[int, Field(ge=1, le=600, description="The longest time to wait, in seconds.")] = _SECONDS,
) -> DetailReply:
    """Wait until a task needs someone (`status` waiting, or `stuck`) or is closed, for a limited time.

    The answer is that of `task_detail`. If its `status` is still pending or running, call again.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), aclosing(operations.reading.watch(order_id).looks()) as looks:
            async for look in looks:
                if look.task.is_closed or look.task.stuck or look.task.status is Status.WAITING:
                    break
    return await operations.reading.detail(order_id)


async def cancel(operations: Operations, order_id: OrderId, call: CancelBody = NO_REASON) -> TaskReply:
    """Stop a task and its coding agent, and keep the work in a rescue."""
    return await operations.decisions.cancel(order_id, call.who, call.why)


async def retry(operations: Operations, order_id: OrderId, call: RetryCall = FAILED_STEP) -> TaskReply:
    """Continue a task; a closed one continues at the step that failed, or at an earlier one.

    First do what the `remedy` of its error says. With `from_step` the task goes back to an earlier step, even if
    it is completed; the later steps are done again.
    """
    return await operations.decisions.retry(order_id, call)


async def rescues(
    operations: Operations,
    order_id: Annotated[Id | None, Field(description="Only those of this task; all when absent.")] = None,
    *,
    everything: Annotated[bool, Field(description="The checkpoints after each step too.")] = False,
) -> RescuesReply:
    """List the work that was saved when an agent failed or was stopped, as snapshots on this host.

    `restore_rescue` restores a snapshot to a new folder.
    """
    return await operations.rescues.list(order_id, everything=everything)


async def restore(operations: Operations, call: RestoreBody) -> RestoredReply:
    """Restore a snapshot, bit for bit, to a new folder of the server's choice; the answer names the folder."""
    return await operations.rescues.restore(call.snapshot)


async def restore_rescue(
    operations: Operations,
    snapshot: Annotated[
        str, Field(min_length=1, max_length=200, description="The `snapshot` of one of `rescues`.")
    ],
) -> RestoredReply:
    """Restore saved work to a new folder on the host that has it; the answer names the folder.

    Nothing is overwritten, and the task stays as it is.
    """
    return await operations.rescues.restore(snapshot)


_ORDER: Final = "/agent-work-orders/{order_id}"
_STAGE: Final = (
    Annotated[
        Literal["collected", "triaged"],
        Field(description="Where it waits: `collected` until someone moves it, or `triaged` for its turn."),
    ],
    "collected",
)
_PROJECT: Final = (
    Annotated[str | None, Field(description="Only the tasks of this project, such as o/r; all when absent.")],
    None,
)
_Hidden: TypeAlias = SkipJsonSchema[None]
ORDER_OPERATIONS: Final = (
    Operation(
        create_task, tool="create_task", effect="adds", for_tool={"stage": _STAGE}, before_tool=with_issue_of_page
    ),
    Operation(run, tool="run", effect="adds", for_tool={"stage": (_Hidden, None)}, before_tool=with_issue_of_page),
    Operation(get_detail, f"GET {_ORDER}/detail", "work orders", tool="task_detail"),
    Operation(
        get_board, "GET /board", "board", tool="board", for_tool={"project": _PROJECT, "limit": (FewRows, 50)}
    ),
    Operation(move, f"POST {_ORDER}/move", "decisions", tool="move", effect="ends"),
    Operation(approve, f"POST {_ORDER}/approve", "decisions", tool="approve", effect="adds"),
    Operation(reject, f"POST {_ORDER}/reject", "decisions", tool="reject", effect="adds"),
    Operation(get_plan, f"GET {_ORDER}/plan", "work orders", tool="plan"),
    Operation(get_diff, f"GET {_ORDER}/diff", "work orders", tool="diff"),
    Operation(steps, tool="steps"),
    Operation(logs, tool="logs"),
    Operation(wait, tool="wait"),
    Operation(cancel, f"POST {_ORDER}/cancel", "decisions", tool="cancel", effect="ends"),
    Operation(retry, f"POST {_ORDER}/retry", "decisions", tool="retry", effect="adds"),
    Operation(rescues, tool="rescues"),
    Operation(restore, "POST /rescues/restore", "board"),
    Operation(restore_rescue, tool="restore_rescue", effect="restores"),
)
