"""Commands in comments, carried out as every face carries out a decision; workers, which read them, get it."""

from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.client import Client

from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.comment_commands import CommentCommand
from septet.contracts.decisions import RetryCall
from septet.contracts.names import Status
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError


def comment_decisions(task_queue: str) -> Callable[[Client, str, CommentCommand, str], Awaitable[Task]]:
    """Return what carries out a command about a work order of a queue."""

    async def decide(client: Client, order_id: str, command: CommentCommand, who: str) -> Task:
        """Carry it out, and return the work order as it is then.

        Raises:
            RefusedTransitionError: It cannot be done now.
            NotFoundError: The work order is gone.
            ServerNotReachedError: Nobody has answered.
        """
        orders = WorkOrders(client, task_queue)
        try:
            return await _carry_out(OrderDecisions(orders), order_id, command, who)
        except RefusedTransitionError:
            task = await orders.get(order_id)
            if activity.info().attempt > 1 and _is_done(command, task):  # by the attempt before this one
                return task
            raise

    return decide


async def _carry_out(decisions: OrderDecisions, order_id: str, command: CommentCommand, who: str) -> Task:
    plan, words = command.plan_sha256, command.words
    match command.verb:
        case "cancel":
            reply = await decisions.cancel(order_id, who, words)
        case "approve":
            reply = await decisions.approve(order_id, plan, who, words)
        case "reject":
            reply = await decisions.reject(order_id, words, plan, who)
        case "retry":
            reply = await decisions.retry(order_id, RetryCall(from_step=command.step, who=who, why=words))
        case _:
            task = await decisions.orders.get(order_id)
            raise RefusedTransitionError(
                f"The work order already works on this and is {task.status.value}.", remedy=_again(task)
            )
    return reply.task


def _again(task: Task) -> str:
    return "Comment `/septet retry` to continue it." if task.is_closed else "Comment `/septet cancel` to end it."


def _is_done(command: CommentCommand, task: Task) -> bool:
    """Say whether a work order is where a command wants it to be."""
    match command.verb:
        case "cancel":
            return task.status is Status.CANCELLED
        case "approve" | "reject":
            return task.status is not Status.WAITING
        case _:
            return not task.is_closed
