"""A work order as a command's answer; after its end, only a completed one is a success."""

import asyncio
import sys

from rich.console import Console

from clients.absence import Absence, outlast_wait
from clients.cli.live import LiveView, stopped_waiting
from clients.cli.render.watch import show_end
from clients.cli.render.work_order import (
    console,
    next_commands,
    show_commands,
    show_start,
    show_task,
    start_line,
)
from clients.cli.reply import CommandReply, tell
from clients.operations import Operations
from septet.contracts.names import Status
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import SeptetError


class WorkOrderFailedError(SeptetError):
    """The work order did not come to a pull request."""


def reply_of_task(answer: TaskReply) -> CommandReply:
    """Return a work order as it is now; once it has ended, people are told what they may type next."""

    def show() -> None:
        show_task(answer.task)
        show_commands(console(), next_commands(answer.task))

    return CommandReply.from_reply(answer, show)


def reply_of_move(answer: TaskReply) -> CommandReply:
    """Return a work order that was moved on the board; people are told where it is now."""

    def show() -> None:
        task = answer.task
        is_cancelled = task.status is Status.CANCELLED
        console().print(f"{task.id} is cancelled." if is_cancelled else f"{task.id} is in {task.stage.value} now.")
        show_commands(console(), next_commands(task))

    return CommandReply.from_reply(answer, show)


async def reply_at_end(
    operations: Operations, answer: TaskReply, *, wait: bool, as_json: bool, verb: str = "started"
) -> CommandReply:
    """Return a work order; where its end is waited for, after that, and people see it live until then.

    Args:
        operations: Where it is.
        answer: The work order as it began, or was taken up again.
        wait: Whether to wait for its end.
        as_json: Whether a program waits, which is answered once.
        verb: What has just been done with it.

    Raises:
        StoppedWaitingError: Ctrl-C.
    """
    order_id, out = answer.task.id, console()
    if not wait:
        return CommandReply.from_reply(answer, lambda: show_start(out, answer.task, verb))
    if as_json:
        try:
            task = await outlast_wait(lambda: operations.orders.wait(order_id), Absence(order_id), tell)
        except asyncio.CancelledError as error:
            raise stopped_waiting(order_id) from error
        last_reply = answer.model_copy(update={"task": task})
        return CommandReply.from_reply(last_reply, lambda: None, failure_of(task))
    out.print(start_line(answer.task, verb), soft_wrap=True)
    return await reply_after(live_view(operations, order_id, out))


async def reply_after(view: LiveView) -> CommandReply:
    """Show a work order live, and return it as it was closed."""
    last = await view.follow()
    return CommandReply.from_reply(
        TaskReply(task=last.task), lambda: show_end(last, view.out), failure_of(last.task)
    )


def live_view(operations: Operations, order_id: str, out: Console) -> LiveView:
    """Return a work order's view on a terminal; where somebody types, they are asked about its plan."""
    return LiveView(operations, order_id, asks=sys.stdin.isatty(), out=out)


def failure_of(task: Task) -> WorkOrderFailedError | None:
    """Return why a closed work order is no success; `None` where it is one."""
    if task.status is Status.COMPLETED:
        return None
    message = task.error.message if task.error else f"{task.id} is {task.status.value}."
    remedy = task.error.remedy if task.error else f"See what happened: septet show {task.id}"
    return WorkOrderFailedError(message, remedy=remedy)
