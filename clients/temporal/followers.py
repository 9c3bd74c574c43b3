"""Notify the agents that follow a pull request of an event on it."""

from typing import Final

from temporalio.client import Client, WorkflowExecution

from activities.host.payloads import memo_json
from clients.temporal.task_rows import task_of_row
from septet.contracts.forge_events import PullRequestTouched
from septet.contracts.pull_request import PullRequestNudge
from septet.contracts.pull_request_names import FOLLOWS
from septet.contracts.task import Task
from septet.errors import SealedError
from septet.forges.forge import pull_request_number

_FOLLOWED: Final = (
    'WorkflowType="PullRequest" AND ExecutionStatus="Running" '
    'AND SeptetStage IN ("review", "executing") AND SeptetPullRequest {} "{}"'
)
_MOST_ROWS: Final = 10_000
"""The most rows read of one repository, latest first: a check names a commit, which the index does not have."""


async def nudge_followers(client: Client, event: PullRequestTouched, digest: str) -> tuple[str, ...]:
    """Make the watches of a pull request that an agent follows check it now, and return their ids.

    Args:
        client: The client.
        event: The event on the pull request or on its commit.
        digest: The identity of the event's delivery.

    Raises:
        RPCError: The server refused.
    """
    where = event.url or f"{event.repository.rstrip('/')}/"
    if '"' in where or "\\" in where:  # a query cannot contain these characters
        return ()
    query = _FOLLOWED.format("=" if event.url else "STARTS_WITH", where)
    told = []
    async for row in client.list_workflows(query, limit=_MOST_ROWS):
        if not await _is_followed(row) or not (event.url or _is_about(event, await task_of_row(row))):
            continue
        handle = client.get_workflow_handle(row.id, run_id=row.run_id)
        await handle.signal("nudge", PullRequestNudge(delivery=digest))
        told.append(row.id)
    return tuple(told)


async def _is_followed(row: WorkflowExecution) -> bool:
    """Return whether an agent follows the pull request of a watch; false if the watch's memo cannot be opened."""
    try:
        return await memo_json(row, FOLLOWS) == b"true"
    except SealedError:
        return False


def _is_about(checks: PullRequestTouched, task: Task) -> bool:
    """Return whether checks are of a task's commit, or of its pull request if the event names pull requests."""
    if checks.commit and checks.commit == task.commit_sha:
        return True
    return bool(checks.pull_requests) and pull_request_number(task.pr_url or "") in checks.pull_requests
