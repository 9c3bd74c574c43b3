"""A work order as a command's answer; after its end, only a completed one is a success."""

from clients.cli.render.work_order import show_task
from clients.cli.reply import CommandReply
from clients.operations import Operations
from septet.contracts.names import Status
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import SeptetError


class WorkOrderFailedError(SeptetError):
    """The work order did not come to a pull request."""


def reply_of_task(answer: TaskReply) -> CommandReply:
    """Return a work order as it is now."""
    return CommandReply.from_reply(answer, lambda: show_task(answer.task))


async def reply_at_end(operations: Operations, answer: TaskReply, *, wait: bool) -> CommandReply:
    """Return a work order, after its end where that is waited for."""
    if not wait:
        return reply_of_task(answer)
    task = await operations.orders.wait(answer.task.id)
    failure = failure_of(task)
    return CommandReply.from_reply(
        TaskReply(task=task), lambda: show_task(task, with_error=failure is None), failure
    )


def failure_of(task: Task) -> WorkOrderFailedError | None:
    """Return why a closed work order is no success; `None` where it is one."""
    if task.status is Status.COMPLETED:
        return None
    message = task.error.message if task.error else f"{task.id} is {task.status.value}."
    remedy = task.error.remedy if task.error else f"Look at it with `septet show {task.id}`."
    return WorkOrderFailedError(message, remedy=remedy)
