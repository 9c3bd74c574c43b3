"""The pull requests that are watched, as the server's list has them: reading it costs no Action."""

from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution

from septet.contracts.pull_request import PullRequestLook, PullRequestNews, WatchingHost
from septet.contracts.pull_request_names import FOLLOWS, TROUBLE, WATCHER
from septet.contracts.row import MEMO
from septet.contracts.task import Task

_QUERY: Final = (
    'WorkflowType="PullRequest" AND ExecutionStatus="Running" '
    'AND SeptetStage IN ("review", "executing") AND TaskQueue="{}"'
)
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class WatchedPullRequest:
    """One watch that waits for news."""

    workflow_id: str
    run_id: str
    started_at: datetime
    watcher: WatchingHost
    look: PullRequestLook
    trouble: str
    """The kind of what kept its host from seeing it; empty where nothing did."""

    @property
    def age_seconds(self) -> float:
        """How long it has been watched."""
        return (datetime.now(UTC) - self.started_at).total_seconds()

    def is_news(self, news: PullRequestNews, event_ids: AbstractSet[str] = frozenset()) -> bool:
        """Say whether the workflow does not know it: a kind of trouble is told once, and its end.

        Args:
            news: What was seen.
            event_ids: The events that it was told of.
        """
        events = {event.id for event in news.events}
        return news.state in {"merged", "closed"} or news.kind != self.trouble or not events <= event_ids


async def list_watched(
    client: Client, task_queue: str, since: datetime | None = None
) -> AsyncIterator[WatchedPullRequest]:
    """Yield the open pull requests of a queue's work orders that hosts look at.

    Args:
        client: Where.
        task_queue: The queue of the work orders.
        since: Only those that have been watched since then.

    Raises:
        RPCError: The server refused.
    """
    query = _QUERY.format(task_queue)
    if since is not None:
        query += f' AND StartTime >= "{since.isoformat()}"'
    async for row in client.list_workflows(query, page_size=_AT_ONCE):
        if (watch := await _watch_of(row)) is not None:
            yield watch


async def _watch_of(row: WorkflowExecution) -> WatchedPullRequest | None:
    """Return what a row tells; `None` where its workflow has the pull request looked at by an activity."""
    try:
        watcher = WatchingHost.model_validate(await row.memo_value(WATCHER, None), strict=False)
        task = Task.model_validate(await row.memo_value(MEMO, None), strict=False)
        trouble = await row.memo_value(TROUBLE, None)
        follows = bool(await row.memo_value(FOLLOWS, None))
    except ValidationError:
        return None
    return WatchedPullRequest(
        workflow_id=row.id,
        run_id=row.run_id or "",
        started_at=row.start_time,
        watcher=watcher,
        look=PullRequestLook(
            repository=task.repository_url,
            url=task.pr_url or "",
            commit=task.commit_sha or "",
            follows=follows,
        ),
        trouble=str(trouble.get("kind", "")) if isinstance(trouble, dict) else "",
    )
