"""Poll pull requests in a worker's process, and notify their workflows of changes; a poll costs no Action.

Each host polls the pull requests whose watches name the host. If a host is gone, another host that can reach the
pull requests polls them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.board.pull_requests import error_kind, look_by_polls
from activities.host.host import Host
from septet.contracts.intake import INTAKE_PREFIX, delivered_at
from septet.contracts.pull_request_watch import PullRequestEnd, PullRequestLook, PullRequestNews, WatchingHost
from septet.errors import InvalidInputError, SeptetError
from septet.forges.events.polls import PullRequestPolls
from septet.git.engine.address import parse_address
from septet.system.durable import open_lock, try_lock
from septet.system.text import cut
from workers.beside import repeating
from workers.watching.pull_request_list import WatchedPullRequest, list_watched
from workflows.pull_request.pull_request import PullRequestWorkflow

_TRUSTED: Final = timedelta(days=1)
"""How long a webhook counts as working after its last delivery."""
EVERY_SECONDS: Final = 60.0
_DIGEST: Final = len("-abcdef")


@dataclass(slots=True)
class WebhookNotes:
    """When each webhook last delivered an event; the HTTP API records these times in the schedules of intakes."""

    client: Client
    _delivered: dict[str, datetime] = field(default_factory=dict)
    _read_at: float | None = None

    async def refresh(self) -> None:
        """Read the times of the webhooks' last events from all intakes' schedules, at most once a minute.

        Raises:
            RPCError: The server refused.
        """
        now = asyncio.get_running_loop().time()
        if self._read_at is not None and now - self._read_at < EVERY_SECONDS:
            return
        self._read_at, found = now, dict[str, datetime]()
        async for entry in await self.client.list_schedules():
            note = entry.schedule.state.note if entry.schedule is not None else None
            if entry.id.startswith(INTAKE_PREFIX) and (when := delivered_at(note or "")) is not None:
                key = entry.id.removeprefix(INTAKE_PREFIX)[:-_DIGEST]
                found[key] = max(when, found.get(key, when))
        self._delivered = found

    def is_told(self, repository: str) -> bool:
        """Return whether a repository's webhooks have delivered lately."""
        try:
            key = parse_address(repository, home=Path.home()).key
        except InvalidInputError:
            return False
        when = self._delivered.get(key)
        return when is not None and datetime.now(UTC) - when < _TRUSTED


@dataclass(frozen=True, slots=True)
class LookPace:
    """The shortest and the longest pause between polls: `look_seconds` and `longest_look_seconds` of the settings.

    Between these limits, the pause equals the pull request's age.
    """

    first_seconds: float
    longest_seconds: float

    def is_over(self, since_seconds: float, age_seconds: float) -> bool:
        """Return whether the pause after the last poll is over."""
        age_then = age_seconds - since_seconds
        return since_seconds >= min(max(age_then, self.first_seconds), self.longest_seconds)


HOST_GONE: Final = "HostGone"
_WHY_LIMIT: Final = 1000
_FOLLOWED: Final = 0.1
"""The age of a pull request that an agent follows is multiplied by this factor, for more frequent polls."""
_TOLD_SECONDS: Final = 900.0
_TOLD_SHARE_SECONDS: Final = 450.0
"""The mean seconds between polls of a repository's followed pull requests, if its webhooks work. Each pull request
is polled at most four times an hour. A poll is about five requests."""
_LOOKS_AT_A_TIME: Final = 16
"""The number of threads for polls; a forge that hangs delays no other work."""

_log = structlog.get_logger()

Look = Callable[[PullRequestLook], PullRequestEnd]


@asynccontextmanager
async def looking_at_pull_requests(client: Client, host: Host) -> AsyncIterator[None]:
    """Poll pull requests while the block runs, unless another worker of this host does."""
    settings = host.settings
    pace = LookPace(settings.look_seconds, settings.longest_look_seconds)
    here = WatchingHost(host=host.id, control_queue=host.control_queue)
    notes = WebhookNotes(client)
    polls = PullRequestPolls(settings.look_seconds, is_told=notes.is_told)
    watcher = PullRequestWatcher(
        client, settings.task_queue, here, partial(look_by_polls, host, polls), pace, notes.is_told
    )
    lock = open_lock(host.state.root / "looks.lock")

    async def look() -> None:
        if try_lock(lock):
            await notes.refresh()
            await watcher.look_around()

    try:
        async with repeating(look, pace.first_seconds, "pull_requests_not_listed"):
            yield
    finally:
        await watcher.close()
        os.close(lock)


@dataclass(slots=True)
class PullRequestWatcher:
    """Polls pull requests for one host, and notifies their workflows of changes."""

    client: Client
    task_queue: str
    here: WatchingHost
    look: Look
    """Reads a pull request's state from the forge; may take long, or raise a `SeptetError`."""
    pace: LookPace
    is_told: Callable[[str], bool] = lambda _repository: False
    """Returns whether webhooks report a repository's changes."""
    _watched: dict[str, WatchedPullRequest] = field(default_factory=dict)
    _looked_at: dict[str, float] = field(default_factory=dict)
    """When each pull request was last polled, by the monotonic clock."""
    _told: dict[str, frozenset[str]] = field(default_factory=dict)
    """The events of which each workflow was notified; few events are reported twice."""
    _looks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _listed_at: float | None = None
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_LOOKS_AT_A_TIME, "looks"))

    async def look_around(self) -> int:
        """Start to poll the pull requests that are due, and return their number.

        Raises:
            RPCError: The Temporal server refused to list the watches.
        """
        await self._list()
        due = [each for each in self._watched.values() if self._is_due(each)]
        queues = {
            each.watcher.host: each.watcher.control_queue for each in due if each.watcher.host != self.here.host
        }
        gone = {host for host, queue in queues.items() if not await self._is_served(queue)}
        for each in due:
            self._begin_look(each, is_left=each.watcher.host in gone)
        return len(due)

    async def close(self) -> None:
        """Cancel the running polls, and report nothing about them."""
        for look in self._looks.values():
            look.cancel()
        await asyncio.gather(*self._looks.values(), return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin_look(self, watch: WatchedPullRequest, *, is_left: bool) -> None:
        """Start a task that polls a pull request; `is_left` is true if the host that polled it is gone."""

        def end(look: asyncio.Task[None]) -> None:
            self._looks.pop(watch.run_id, None)
            if not look.cancelled() and (error := look.exception()) is not None:
                _log.warning("pull_request_not_looked_at", watch=watch.workflow_id, error=str(error))

        self._looked_at[watch.run_id] = asyncio.get_running_loop().time()
        self._looks[watch.run_id] = look = asyncio.create_task(self._look_at(watch, is_left=is_left))
        look.add_done_callback(end)

    async def _list(self) -> None:
        """List the watches of new pull requests; list all watches as rarely as an old pull request is polled."""
        now = asyncio.get_running_loop().time()
        is_full = self._listed_at is None or now - self._listed_at >= self.pace.longest_seconds
        since = None if is_full else datetime.now(UTC) - timedelta(seconds=2 * self.pace.longest_seconds)
        rows = {each.run_id: each async for each in list_watched(self.client, self.task_queue, since)}
        if is_full:
            self._listed_at, self._watched = now, rows
            self._looked_at = {run: at for run, at in self._looked_at.items() if run in rows}
            self._told = {run: events for run, events in self._told.items() if run in rows}
        else:
            self._watched |= rows

    def _is_due(self, watch: WatchedPullRequest) -> bool:
        """Return whether a pull request is due for a poll; the first polls of old pull requests are spread out."""
        if watch.run_id in self._looks:
            return False
        now = asyncio.get_running_loop().time()
        is_first = watch.run_id not in self._looked_at
        if is_first:
            share = hash(watch.run_id) % 1000 / 1000 if watch.age_seconds > self.pace.longest_seconds else 1.0
            self._looked_at[watch.run_id] = now - self.pace.longest_seconds * share
        since = now - self._looked_at[watch.run_id]
        if watch.look.follows and not is_first and self.is_told(watch.look.repository):
            followed = [each.look.repository for each in self._watched.values() if each.look.follows]
            return since >= max(_TOLD_SECONDS, _TOLD_SHARE_SECONDS * followed.count(watch.look.repository))
        return self.pace.is_over(since, watch.age_seconds * (_FOLLOWED if watch.look.follows else 1.0))

    async def _is_served(self, queue: str) -> bool:
        """Return whether a worker has polled a queue within the last minutes."""
        request = DescribeTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        try:
            return bool((await self.client.workflow_service.describe_task_queue(request)).pollers)
        except RPCError:
            return True

    async def _look_at(self, watch: WatchedPullRequest, *, is_left: bool) -> None:
        is_own = watch.watcher.host == self.here.host
        if not is_own and not is_left:
            return
        news = await self._ask(watch)
        if is_left and news.state == "unknown":
            gone, here = watch.watcher.host, self.here.host
            why = f"host {gone}, which watched it, is gone, and host {here} cannot watch it: {news.why}"
            news = news.model_copy(update={"kind": HOST_GONE, "why": cut(why, _WHY_LIMIT)})
        handle = self.client.get_workflow_handle(watch.workflow_id, run_id=watch.run_id)
        try:
            if is_left and news.state != "unknown":
                await handle.signal(PullRequestWorkflow.watch_from, self.here)
            known = self._told.get(watch.run_id, frozenset())
            if watch.is_news(news, known):
                await handle.signal(PullRequestWorkflow.looked, news)
                self._told[watch.run_id] = known | {event.id for event in news.events}
                self._watched.pop(watch.run_id, None)  # it is listed again if it is still watched
        except RPCError as error:
            _log.info("pull_request_not_told", watch=watch.workflow_id, error=error.message)

    async def _ask(self, watch: WatchedPullRequest) -> PullRequestNews:
        """Return the forge's answer, or the reason why there is none."""
        url = watch.look.url
        try:
            end = await asyncio.get_running_loop().run_in_executor(self._threads, self.look, watch.look)
        except SeptetError as error:
            return PullRequestNews(
                url=url, state="unknown", kind=error_kind(error), why=cut(str(error), _WHY_LIMIT)
            )
        return PullRequestNews(url=url, state=end.state, events=end.events)
