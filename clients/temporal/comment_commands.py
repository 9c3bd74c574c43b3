"""Carry out the commands that people write in comments, as decisions on work orders."""

from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.client import Client

from clients.executions.messages import has_taken
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import RetryCall
from septet.contracts.forge_events import CommentCommand
from septet.contracts.names import Status, Step, watch_id
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError


def comment_decisions(task_queue: str) -> Callable[[Client, str, CommentCommand, str], Awaitable[Task]]:
    """Return the function that carries out a comment's command on a work order of a queue."""

    async def decide(client: Client, order_id: str, command: CommentCommand, who: str) -> Task:
        """Carry out a command once, even if the activity is tried again, and return the changed work order.

        An earlier attempt may have acted before it was lost. An update with the id of the command's workflow, or a
        reset of the work order, is the effect of such an attempt.

        Raises:
            RefusedTransitionError: The work order's state does not allow the command now.
            NotFoundError: The work order is gone.
            ServerNotReachedError: No worker answers.
        """
        info, orders = activity.info(), WorkOrders(client, task_queue)
        if info.attempt > 1 and await _is_done(orders, order_id, command, info):
            return await orders.get(order_id)
        return await _carry_out(OrderDecisions(orders, info.workflow_id), order_id, command, who)

    return decide


async def _carry_out(decisions: OrderDecisions, order_id: str, command: CommentCommand, who: str) -> Task:
    plan, words = command.plan_sha256, command.words
    match command.verb:
        case "cancel":
            reply = await decisions.cancel(order_id, who, words)
        case "approve":
            reply = await decisions.approve(order_id, plan, who, words, command.findings)
        case "reject":
            reply = await decisions.reject(order_id, words, plan, who)
        case "retry":
            reply = await decisions.retry(order_id, RetryCall(from_step=command.step, who=who, why=words))
        case _:
            task = await decisions.orders.get(order_id)
            remedy = "Comment `/septet retry` to continue it."
            if not task.is_closed:
                remedy = "Comment `/septet cancel` to end it."
            elif task.status is Status.COMPLETED:
                again = "to have it worked on again, while it is in review."
                remedy = f"Comment `/septet retry {Step.IMPLEMENT_PLAN}` {again}"
            message = f"The work order already works on this and is {task.status.value}."
            raise RefusedTransitionError(message, remedy=remedy)
    return reply.task


async def _is_done(orders: WorkOrders, order_id: str, command: CommentCommand, info: activity.Info) -> bool:
    """Return whether an earlier attempt of the activity carried out the command."""
    if await orders.was_reset_since(order_id, info.scheduled_time):
        if command.verb != "retry":
            remedy = "Give the command again to apply it to the work that follows."
            raise RefusedTransitionError(f"{order_id} was taken up again after this command.", remedy=remedy)
        return True
    if command.verb == "cancel" and (await orders.get(order_id)).status is Status.CANCELLED:
        return True
    handles = (orders.handle(order_id), orders.handle(watch_id(order_id)))
    return any([await has_taken(handle, info.workflow_id or "") for handle in handles])
