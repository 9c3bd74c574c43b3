"""Agents that follow a pull request are told what happened on it."""

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
"""Of one repository, the latest: a check names a commit, and commits cannot be asked for."""


async def nudge_followers(client: Client, event: PullRequestTouched, digest: str) -> tuple[str, ...]:
    """Have a pull request looked at now where an agent follows it; return who was told.

    Args:
        client: Where.
        event: What has happened on it, or to its commit.
        digest: What the delivery of the event is known by.

    Raises:
        RPCError: The server refused.
    """
    where = event.url or f"{event.repository.rstrip('/')}/"
    if '"' in where or "\\" in where:  # the server cannot be asked for it
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
    """Say whether an agent follows the pull request of a watch; one that cannot be opened is none of ours."""
    try:
        return await memo_json(row, FOLLOWS) == b"true"
    except SealedError:
        return False


def _is_about(checks: PullRequestTouched, task: Task) -> bool:
    """Say whether checks are of a task's commit, or of a pull request that its forge names."""
    if checks.commit and checks.commit == task.commit_sha:
        return True
    return bool(checks.pull_requests) and pull_request_number(task.pr_url or "") in checks.pull_requests
