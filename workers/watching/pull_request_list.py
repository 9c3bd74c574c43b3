"""List the watched pull requests from Temporal's list of workflows, which costs no Action."""

from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution

from activities.host.payloads import memo_json, read_memo
from septet.contracts.names import FOLLOWS, TROUBLE, WATCHER
from septet.contracts.pull_request_watch import PullRequestLook, PullRequestNews, WatchingHost
from septet.contracts.task import Task
from septet.contracts.task_rows import MEMO
from septet.errors import SealedError

_QUERY: Final = (
    'WorkflowType="PullRequest" AND ExecutionStatus="Running" '
    'AND SeptetStage IN ("review", "executing") AND TaskQueue="{}"'
)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WatchedPullRequest:
    """A watched pull request, whose workflow waits until a host reports news."""

    workflow_id: str
    run_id: str
    started_at: datetime
    watcher: WatchingHost
    look: PullRequestLook
    trouble: str

    @property
    def age_seconds(self) -> float:
        """The seconds since the watch began."""
        return (datetime.now(UTC) - self.started_at).total_seconds()

    def is_news(self, news: PullRequestNews, event_ids: AbstractSet[str] = frozenset()) -> bool:
        """Return whether a poll's result is new to the workflow; an error is reported once, and so is its end."""
        events = {event.id for event in news.events}
        return news.state in {"merged", "closed"} or news.kind != self.trouble or not events <= event_ids


async def list_watched(
    client: Client, task_queue: str, since: datetime | None = None
) -> AsyncIterator[WatchedPullRequest]:
    """Yield the pull requests that a queue's hosts must poll; log those whose data no key of this process opens.

    Args:
        since: The earliest start of the watches.

    Raises:
        RPCError: The server refused.
    """
    query = _QUERY.format(task_queue)
    if since is not None:
        query += f' AND StartTime >= "{since.isoformat()}"'
    sealed = []
    async for row in client.list_workflows(query, page_size=1000):
        try:
            watch = await _watch_of(row)
        except SealedError:
            sealed.append(row.id)
            continue
        if watch is not None:
            yield watch
    if sealed:
        _log.warning("watches_not_opened", count=len(sealed), watches=sealed[:5])


async def _watch_of(row: WorkflowExecution) -> WatchedPullRequest | None:
    """Return the pull request that a workflow watches; `None` if the workflow itself polls, by an activity."""
    try:
        watcher = WatchingHost.model_validate_json(await memo_json(row, WATCHER) or b"null")
        task = Task.model_validate_json(await memo_json(row, MEMO) or b"null")
        trouble = await read_memo(row, TROUBLE, PullRequestNews)
        follows = await memo_json(row, FOLLOWS) == b"true"
    except ValidationError:
        return None
    return WatchedPullRequest(
        workflow_id=row.id,
        run_id=row.run_id or "",
        started_at=row.start_time,
        watcher=watcher,
        look=PullRequestLook(
            repository=task.repository_url, url=task.pr_url or "", commit=task.commit_sha or "", follows=follows
        ),
        trouble=trouble.kind if trouble is not None else "",
    )
