"""The watch over a completed work order's pull request: what became of the task since."""

import asyncio
from typing import Final

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.refusals import server_refusal
from clients.temporal.task_rows import task_of_row
from septet.contracts.forge_events import ChecksChanged, CommentWritten, PullRequestChanged, ReviewWritten
from septet.contracts.names import Stage
from septet.contracts.pull_request import FOLLOWS, PullRequestNews, PullRequestNudge, watch_id
from septet.contracts.task import Task
from septet.forges.forge import pull_request_number

_ENDS_WITHIN_SECONDS: Final = 10.0
_FOLLOWED: Final = (
    'WorkflowType="PullRequest" AND ExecutionStatus="Running" '
    'AND SeptetStage IN ("review", "executing") AND SeptetPullRequest {} "{}"'
)
_MOST_ROWS: Final = 10_000
"""Of one repository, the latest: a check names a commit, and commits cannot be asked for."""
_HAS_THE_ROW: Final = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED)


async def watch_of(client: Client, order_id: str) -> WorkflowExecutionDescription | None:
    """Return the watch of a work order; `None` where there is none, or it was given up."""
    try:
        description = await client.get_workflow_handle(watch_id(order_id)).describe()
    except RPCError:
        return None
    return description if description.status in _HAS_THE_ROW else None


async def with_watch(client: Client, task: Task) -> Task:
    """Return a completed work order in the stage that it has come to since."""
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
    }
    if row.rework is not None and row.rework.round:
        update |= {"commit_sha": row.commit_sha, "usage": row.usage}
        update["rescues"] = (*task.rescues, *(each for each in row.rescues if each not in task.rescues))
    return task.model_copy(update=update)


async def look_now(client: Client, pr_url: str) -> None:
    """Have a pull request looked at by those who watch it, without their pause; nobody may watch it.

    Raises:
        RPCError: The server refused.
    """
    await tell_watches(client, pr_url)


async def tell_watches(client: Client, pr_url: str, news: PullRequestNews | None = None) -> tuple[str, ...]:
    """Tell who watches a pull request what became of it, or have them look now; return who was told.

    Raises:
        RPCError: The server refused.
    """
    if '"' in pr_url or "\\" in pr_url:  # the server cannot be asked for it
        return ()
    told = []
    query = f'WorkflowType="PullRequest" AND ExecutionStatus="Running" AND SeptetPullRequest="{pr_url}"'
    async for row in client.list_workflows(query):
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await (handle.signal("nudge") if news is None else handle.signal("looked", news))
        told.append(row.id)
    return tuple(told)


async def nudge_followers(
    client: Client, event: ReviewWritten | ChecksChanged | CommentWritten | PullRequestChanged, digest: str
) -> tuple[str, ...]:
    """Have a pull request looked at now where an agent follows it; return who was told.

    Args:
        client: Where.
        event: What has happened on it.
        digest: What the delivery of the event is known by.

    Raises:
        RPCError: The server refused.
    """
    is_of_commit = isinstance(event, ChecksChanged)
    where = f"{event.repository.rstrip('/')}/" if isinstance(event, ChecksChanged) else event.url
    if not where or '"' in where or "\\" in where:  # the server cannot be asked for it
        return ()
    query = _FOLLOWED.format("STARTS_WITH" if is_of_commit else "=", where)
    told = []
    async for row in client.list_workflows(query, limit=_MOST_ROWS):
        if not await row.memo_value(FOLLOWS, None):
            continue
        if isinstance(event, ChecksChanged) and not _is_about(event, await task_of_row(row)):
            continue
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await handle.signal("nudge", PullRequestNudge(delivery=digest))
        told.append(row.id)
    return tuple(told)


def _is_about(checks: ChecksChanged, task: Task) -> bool:
    """Say whether checks are of a task's commit, or of a pull request that its forge names."""
    if checks.commit and checks.commit == task.commit_sha:
        return True
    return bool(checks.pull_requests) and pull_request_number(task.pr_url or "") in checks.pull_requests


async def give_up_watch(client: Client, order_id: str) -> None:
    """End the watch of a work order whose work goes on, so that it is found on the board no more.

    Where no worker carries that out, the watch is terminated.

    Raises:
        ServerNotReachedError: The server refused.
    """
    watch = client.get_workflow_handle(watch_id(order_id))
    try:
        await watch.cancel()
        try:
            async with asyncio.timeout(_ENDS_WITHIN_SECONDS):
                await watch.result()
        except WorkflowFailureError:
            return
        except TimeoutError:
            await watch.terminate("its work continues")
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise server_refusal(error) from error
