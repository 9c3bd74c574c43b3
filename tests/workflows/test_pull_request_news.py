"""Pull requests that a host looks at: their workflows get only news, and write no event meanwhile."""

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from fakes.activities import Doubles
from fakes.running import replayed, result_of, start, watched
from fakes.waiting import wait_until
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import TROUBLE, WATCHER, Stage, Status, watch_id, watched_order
from septet.contracts.pull_request_watch import (
    PullRequestEnd,
    PullRequestLook,
    PullRequestNews,
    PullRequestWatch,
    WatchingHost,
)
from septet.contracts.task import Task
from septet.contracts.workspace import PULL_REQUESTS, OpenWorkspace, Workspace
from septet.errors import ForgeUnavailableError
from septet.forges.values import PullRequestState
from workers.beside import beside
from workers.watching.pull_request_polls import LookPace, PullRequestWatcher
from workflows.pull_request.pull_request import PullRequestWorkflow

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "file:///origin.git/pull/1"
PACE = LookPace(0.1, 0.3)
TASK = Task(id="wo-1", repository_url="/app", pr_url=URL, status=Status.COMPLETED, stage=Stage.REVIEW)


class FakeForge:
    """A forge with one pull request."""

    def __init__(self) -> None:
        self.state: PullRequestState = "open"
        self.is_away = False
        self.looks = 0

    def look(self, look: PullRequestLook) -> PullRequestEnd:
        """Return the state, or fail because the forge is away."""
        assert look.url == URL
        self.looks += 1
        if self.is_away:
            raise ForgeUnavailableError("The forge is away.")
        return PullRequestEnd(state=self.state)


@pytest.fixture
def doubles() -> Doubles:
    made = Doubles(task_queue=f"queue-{uuid.uuid4().hex}")

    def opened(asked: OpenWorkspace) -> Workspace:
        where = {"serves": (PULL_REQUESTS,), "control_queue": f"{made.task_queue}-host"}
        return made.workspace(asked).model_copy(update=where)

    return replace(made, open_workspace=opened)


@asynccontextmanager
async def looking(
    client: Client, doubles: Doubles, forge: FakeForge, host: str = "host"
) -> AsyncIterator[PullRequestWatcher]:
    """Let a host look repeatedly while the block lasts."""
    here = WatchingHost(host=host, control_queue=f"{doubles.task_queue}-{host}")
    watcher = PullRequestWatcher(client, doubles.task_queue, here, forge.look, PACE)

    async def look() -> None:
        while True:
            await watcher.look_around()
            await asyncio.sleep(PACE.first_seconds)

    async with beside(look()):
        yield watcher
    await watcher.close()


async def kinds_of(watch: WorkflowHandle[Any, Any]) -> Counter[str]:
    """Return the number of events of each kind, without workflow tasks, whose number grows under load."""
    kinds = [str(event.WhichOneof("attributes")) async for event in watch.fetch_history_events()]
    return Counter(kind for kind in kinds if not kind.startswith("workflow_task_"))


async def test_a_merge_is_told_by_the_host(client: Client, doubles: Doubles) -> None:
    """Looks at an open pull request leave no activity and no timer in the history; the merge ends the watch."""
    forge = FakeForge()
    async with watched(client, doubles) as watch, looking(client, doubles, forge):
        await wait_until(lambda: forge.looks >= 1)
        before = await kinds_of(watch)
        await wait_until(lambda: forge.looks >= 4)
        assert await kinds_of(watch) == before
        forge.state = "merged"
        assert (await result_of(watch)).stage == "done"
        kinds = await kinds_of(watch)
        order = await WorkOrders(client, doubles.task_queue).get(watched_order(watch.id))
    assert not doubles.looks
    assert kinds["activity_task_scheduled_event_attributes"] == kinds["timer_started_event_attributes"] == 0
    assert kinds["workflow_execution_signaled_event_attributes"] == 1
    assert order.stage == "done"


async def test_a_close_is_told_and_one_that_was_opened_again_is_looked_at(
    client: Client, doubles: Doubles
) -> None:
    """A close without a merge blocks the task; after a nudge the host looks again and finds the merge."""
    forge = FakeForge()
    forge.state = "closed"
    async with watched(client, doubles, "pull_request/seen-by-host") as watch, looking(client, doubles, forge):
        ask = lambda: watch.query(PullRequestWorkflow.work_order)  # noqa: E731
        await wait_until(ask, lambda task: task.stage is Stage.BLOCKED)
        forge.state = "merged"
        await watch.signal(PullRequestWorkflow.nudge)
        assert (await result_of(watch)).stage == "done"


async def test_a_nudge_counts_before_its_watch_has_decided_anything(client: Client, doubles: Doubles) -> None:
    """A nudge that arrives with the start of the watch still causes a look."""
    queue = f"{doubles.task_queue}-host"
    task = Task(id=f"wo-{uuid.uuid4().hex[:8]}", pr_url=URL, status=Status.COMPLETED, stage=Stage.REVIEW)
    doubles.pull_requests[URL] = "merged"
    watch = PullRequestWatch(
        task=task, forge="local", watcher=WatchingHost(host="host", control_queue=queue), task_queue=queue
    )
    async with (
        Worker(client, task_queue=queue, activities=doubles.activities()),
        Worker(client, task_queue=doubles.task_queue, workflows=[PullRequestWorkflow]),
    ):
        handle = await client.start_workflow(
            PullRequestWorkflow.run,
            watch,
            id=f"{task.id}/pr",
            task_queue=doubles.task_queue,
            start_signal="nudge",
        )
        assert (await result_of(handle)).stage == "done"
        await replayed(handle, "pull_request/nudged-early")


async def test_a_forge_that_is_away_is_told_once(client: Client, doubles: Doubles) -> None:
    """The task shows why the look fails as the reason of its wait, until the forge is back."""
    forge = FakeForge()
    forge.is_away = True
    async with watched(client, doubles) as watch:
        orders, order_id = WorkOrders(client, doubles.task_queue), watched_order(watch.id)
        assert await orders.waiting_for(order_id) is None
        async with looking(client, doubles, forge):
            told = await wait_until(lambda: orders.waiting_for(order_id))
            assert "The forge is away." in told
            forge.is_away = False
            await wait_until(lambda: orders.waiting_for(order_id), lambda waits: waits is None)
            forge.state = "merged"
            assert (await result_of(watch)).stage == "done"


async def test_another_host_takes_over_from_one_that_is_gone(client: Client, doubles: Doubles) -> None:
    """No worker serves the first host: the second host looks, records its name, and finds the merge."""
    forge = FakeForge()
    async with (
        watched(client, doubles, "pull_request/taken-over") as watch,
        looking(client, doubles, forge, "second"),
    ):

        async def watcher() -> str:
            return str((await (await watch.describe()).memo_value(WATCHER))["host"])

        await wait_until(watcher, lambda host: host == "second")
        forge.state = "merged"
        assert (await result_of(watch)).stage == "done"


@pytest.mark.parametrize(
    ("signal", "content"),
    [
        ("watch_from", WatchingHost(host="second", control_queue="second")),
        ("looked", PullRequestNews(url=URL, state="unknown", why="The forge is away.")),
        ("renew", PullRequestWatch(task=TASK.model_copy(update={"title": "Renewed"}), forge="github")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_what_is_said_before_the_first_decision_counts(
    client: Client, doubles: Doubles, signal: str, content: Any
) -> None:
    """A signal that arrives before a worker runs fails no workflow task, and the start does not overwrite it."""
    first = WatchingHost(host="first", control_queue="first")
    watch = await client.start_workflow(
        PullRequestWorkflow.run,
        PullRequestWatch(task=TASK, forge="github", watcher=first),
        id=f"wo-{uuid.uuid4().hex[:8]}/pr",
        task_queue=doubles.task_queue,
        start_signal=signal,
        start_signal_args=[content],
    )
    async with Worker(client, task_queue=doubles.task_queue, workflows=[PullRequestWorkflow]):
        task = await watch.query(PullRequestWorkflow.work_order)
    described = await watch.describe()
    known = (task.title, (await described.memo_value(WATCHER))["host"], await described.memo_value(TROUBLE, None))
    failed = [
        event
        async for event in watch.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    await watch.terminate()
    assert failed == []
    title, host, trouble = known
    assert (title == "Renewed") is (signal == "renew")
    assert (host == "second") is (signal == "watch_from")
    assert (trouble is not None) is (signal == "looked")
    await replayed(watch, "pull_request/seen-early" if signal == "looked" else "")


async def test_a_host_that_is_there_keeps_its_pull_requests(client: Client, doubles: Doubles) -> None:
    """While the first host's worker polls, the second host does not look at its pull requests."""
    own, other = FakeForge(), FakeForge()
    queue = f"{doubles.task_queue}-host"
    async with (
        Worker(client, task_queue=queue, activities=doubles.activities()),
        watched(client, doubles) as watch,
        looking(client, doubles, own),
        looking(client, doubles, other, "second"),
    ):
        await wait_until(lambda: own.looks >= 3)
        own.state = "merged"
        await result_of(watch)
    assert other.looks == 0


async def test_a_forge_that_hangs_holds_no_other_up(client: Client, doubles: Doubles) -> None:
    """While one look hangs, the watcher finds another pull request's merge, and does not repeat the hanging look."""
    hangs, goes_on = threading.Event(), FakeForge()
    goes_on.state = "merged"
    names: list[str] = []

    def look(asked: PullRequestLook) -> PullRequestEnd:
        names.append(asked.repository)
        if asked.repository == "/hangs":
            hangs.wait(60)
            return PullRequestEnd(state="open")
        return goes_on.look(asked)

    async with watched(client, doubles) as watch:
        other = await start(client, doubles.task_queue, repository="/hangs")
        await result_of(other)
        here = WatchingHost(host="host", control_queue=f"{doubles.task_queue}-host")
        watcher = PullRequestWatcher(client, doubles.task_queue, here, look, PACE)
        try:
            await wait_until(lambda: _look_around(watcher), lambda _: "/hangs" in names)
            await wait_until(lambda: _look_around(watcher), lambda _: goes_on.looks > 0)
            assert (await result_of(watch)).stage == "done"
        finally:
            hangs.set()
            await watcher.close()
            await client.get_workflow_handle(watch_id(other.id)).terminate()
    assert names.count("/hangs") == 1


async def _look_around(watcher: PullRequestWatcher) -> int:
    return await watcher.look_around()


async def test_what_no_host_can_see_is_told(client: Client, doubles: Doubles) -> None:
    """If the repository is on the disk of a lost host, the task waits for this host."""
    forge = FakeForge()
    forge.is_away = True
    async with watched(client, doubles) as watch, looking(client, doubles, forge, "second"):
        orders = WorkOrders(client, doubles.task_queue)
        told = await wait_until(lambda: orders.waiting_for(watched_order(watch.id)))
    assert "host host, which watched it, is gone" in told
