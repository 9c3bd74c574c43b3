"""Read, notify and cancel watches, the workflows that look after pull requests of completed work orders."""

import asyncio
from typing import TYPE_CHECKING, Final

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.messages import server_refusal
from clients.executions.task_rows import task_of_row
from septet.contracts.names import Stage, watch_id
from septet.contracts.task import Task

if TYPE_CHECKING:
    from septet.contracts.pull_request_watch import PullRequestNews

_HAS_THE_ROW: Final = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED)


async def watch_of(client: Client, order_id: str) -> WorkflowExecutionDescription | None:
    """Return the description of a work order's watch; `None` unless the watch runs or is completed."""
    try:
        description = await client.get_workflow_handle(watch_id(order_id)).describe()
    except RPCError:
        return None
    return description if description.status in _HAS_THE_ROW else None


async def with_watch(client: Client, task: Task) -> Task:
    """Return a completed work order with the stage, error, rework and budget that its watch has now."""
    watch = await watch_of(client, task.id)
    if watch is None:
        return task
    row = await task_of_row(watch)
    if row.stage is Stage.REVIEW and row.rework is None:
        return task
    update: dict[str, object] = {
        "stage": row.stage,
        "error": row.error,
        "updated_at": row.updated_at,
        "rework": row.rework,
        "budget": row.budget,
        "findings": row.findings,
    }
    if row.rework is not None and row.rework.round:
        update |= {"commit_sha": row.commit_sha, "usage": row.usage}
        update["rescues"] = (*task.rescues, *(each for each in row.rescues if each not in task.rescues))
    return task.model_copy(update=update)


async def tell_watches(client: Client, pr_url: str, news: "PullRequestNews | None" = None) -> tuple[str, ...]:
    """Send `news` to a pull request's watches, or make the watches check now; return the watches' ids.

    Raises:
        RPCError: The server refused.
    """
    if '"' in pr_url or "\\" in pr_url:  # a query cannot contain these characters
        return ()
    told = []
    query = f'WorkflowType="PullRequest" AND ExecutionStatus="Running" AND SeptetPullRequest="{pr_url}"'
    async for row in client.list_workflows(query):
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await (handle.signal("nudge") if news is None else handle.signal("looked", news))
        told.append(row.id)
    return tuple(told)


async def give_up_watch(client: Client, order_id: str) -> None:
    """Cancel the watch of a work order that continues, so that the board shows only the work order.

    If no worker carries out the cancel within 10 s, the watch is terminated.

    Raises:
        ServerNotReachedError: The server refused.
    """
    watch = client.get_workflow_handle(watch_id(order_id))
    try:
        await watch.cancel()
        try:
            async with asyncio.timeout(10.0):
                await watch.result()
        except WorkflowFailureError:
            return
        except TimeoutError:
            await watch.terminate("its work continues")
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise server_refusal(error) from error
