"""Turn a work order into a command's reply; a command fails if its work order is closed but not completed."""

import asyncio
import sys
from collections.abc import Awaitable

from rich.console import Console
from rich.text import Text

from clients.cli.render.live_view import LiveView, stopped_waiting
from clients.cli.render.watch import show_end
from clients.cli.render.work_order import (
    next_commands,
    show_commands,
    show_estimate,
    show_start,
    show_start_commands,
    show_task,
    start_line,
)
from clients.cli.terminal.console import console
from clients.cli.terminal.output import echo, notify
from clients.cli.terminal.reply import CommandReply
from clients.operations.absence import Absence, outlast_wait
from clients.operations.operations import Operations
from septet.contracts.costs import Estimate
from septet.contracts.names import Status
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import SeptetError


class WorkOrderFailedError(SeptetError):
    """The work order did not come to a pull request."""


def reply_of_task(answer: TaskReply) -> CommandReply:
    """Return the reply that prints a work order and the commands that people may type next."""

    def show() -> None:
        show_task(answer.task)
        show_commands(console(), next_commands(answer.task))

    return CommandReply.from_reply(answer, show)


def reply_of_move(answer: TaskReply) -> CommandReply:
    """Return the reply that prints a moved work order's new stage."""

    def show() -> None:
        task = answer.task
        is_cancelled = task.status is Status.CANCELLED
        console().print(f"{task.id} is cancelled." if is_cancelled else f"{task.id} is in {task.stage.value} now.")
        show_commands(console(), next_commands(task))

    return CommandReply.from_reply(answer, show)


async def reply_at_end(
    operations: Operations, answer: TaskReply, *, wait: bool, as_json: bool, verb: str = "started"
) -> CommandReply:
    """Return the reply on a started work order; with `wait`, first show the work order live to its end.

    Raises:
        StoppedWaitingError: The person pressed Ctrl-C.
    """
    order_id, out = answer.task.id, console()
    if not wait:
        return CommandReply.from_reply(answer, lambda: show_start(out, answer.task, verb))
    if as_json:
        try:
            task = await outlast_wait(lambda: operations.orders.wait(order_id), Absence(order_id), notify)
        except asyncio.CancelledError as error:
            raise stopped_waiting(order_id) from error
        last_reply = answer.model_copy(update={"task": task})
        return CommandReply.from_reply(last_reply, lambda: None, failure_of(task))
    out.print(start_line(answer.task, verb), soft_wrap=True)
    return await _reply_after(LiveView(operations, order_id, asks=sys.stdin.isatty(), out=out))


async def show_new_order(
    operations: Operations, task: Task, estimate: Awaitable[Estimate], notice: Awaitable[str], *, wait: bool
) -> CommandReply:
    """Print a new work order's id, estimate and notices; with `wait`, then show the work order live.

    Raises:
        StoppedWaitingError: The person pressed Ctrl-C.
    """
    out = console()
    out.print(start_line(task, "started"), soft_wrap=True)
    if not wait:
        if nobody := await operations.nobody_works():
            out.print(Text(nobody, style="yellow"), soft_wrap=True)
        await _show_notes(out, estimate, notice)
        return CommandReply(show=lambda: show_start_commands(out, task))
    view = LiveView(operations, task.id, asks=sys.stdin.isatty(), out=out)
    view.upcoming()
    await _show_notes(out, estimate, notice)
    return await _reply_after(view)


async def _show_notes(out: Console, estimate: Awaitable[Estimate], notice: Awaitable[str]) -> None:
    known = await estimate
    show_estimate(out, known.text if known.is_known else "")
    if text := await notice:
        echo(text, err=True)


async def _reply_after(view: LiveView) -> CommandReply:
    """Show a work order live until it is closed, and return the command's reply."""
    last = await view.follow()
    answer = TaskReply(task=last.task)
    return CommandReply.from_reply(answer, lambda: show_end(last, view.out), failure_of(last.task))


def failure_of(task: Task) -> WorkOrderFailedError | None:
    """Return the error that a closed work order's command ends with; `None` if the work order completed."""
    if task.status is Status.COMPLETED:
        return None
    message = task.error.message if task.error else f"{task.id} is {task.status.value}."
    remedy = task.error.remedy if task.error else f"See what happened: septet show {task.id}"
    return WorkOrderFailedError(message, remedy=remedy)
