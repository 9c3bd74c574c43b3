"""After a completed work order: a workflow watches its pull request by its host, and has the task's row on the board."""

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.activities import Doubles
from fakes.running import failure_of, replayed, result_of, start, watched
from fakes.waiting import wait_until
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from clients.executions.task_rows import task_of_row
from clients.http.app import api_of
from clients.operations.operations import Operations
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, Target
from septet.contracts.names import TROUBLE, WATCHER, Stage, Status, Step, watch_id, watched_order
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
from septet.state import StateDir
from workers.beside import beside
from workers.watching.pull_request_polls import LookPace, PullRequestWatcher
from workflows.pull_request.pull_request import PullRequestWorkflow

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "file:///origin.git/pull/1"


async def found(handle: WorkflowHandle[Any, Any]) -> tuple[dict[str, Any], Task]:
    """Return the search attributes of a workflow, and its row as lists show it."""
    description = await handle.describe()
    told = {pair.key.name: pair.value for pair in description.typed_search_attributes}
    return told, await task_of_row(description)


async def test_a_person_moves_the_task(client: Client, doubles: Doubles) -> None:
    """A person can move the task to done and to blocked; a refusal names the allowed moves, and leaves no event."""
    async with watched(client, doubles, "pull_request/blocked-and-done") as watch:
        await wait_until(lambda: len(doubles.looks) >= 2)
        for to, allowed in (("triaged", "executing, done, blocked"), ("executing", "continues the work")):
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await watch.execute_update(PullRequestWorkflow.move, MoveCall(to=Target(to)))
            assert allowed in str(refused.value.cause)
        assert not [kind for kind in await kinds_of(watch) if kind.startswith("workflow_execution_update")]
        held = await watch.execute_update(
            PullRequestWorkflow.move, MoveCall(to=Target.BLOCKED, who="ann", why="not now")
        )
        assert (held.stage, held.error and held.error.message) == ("blocked", "not now")
        orders = WorkOrders(client, doubles.task_queue)
        call = MoveCall(to=Target.DONE, who="ann", why="merged by hand")
        over = (await OrderDecisions(orders).move(watch.id.removesuffix("/pr"), call)).task
        assert (over.stage, over.status, len(over.steps)) == ("done", "completed", 7)
        assert (await result_of(watch)).stage == "done"
        history = await watch.query(PullRequestWorkflow.history)
    assert [(move.who, move.to, move.why) for move in history] == [
        ("ann", "blocked", "not now"), ("ann", "done", "merged by hand"),
    ]  # fmt: skip


async def test_a_task_that_the_server_has_forgotten_is_known_by_its_watch(
    client: Client, doubles: Doubles, tmp_path: Path
) -> None:
    """A task that outlives the server's retention can still be read and moved, and the stream of its logs ends."""
    async with watched(client, doubles) as watch:
        orders, order_id = WorkOrders(client, doubles.task_queue), watch.id.removesuffix("/pr")
        await client.workflow_service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(
                namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=order_id)
            )
        )
        await wait_until(lambda: is_forgotten(client, order_id))
        task = await orders.get(order_id)
        assert (task.id, task.title, task.status, task.stage) == (
            order_id, "Totals are wrong", "completed", "review",
        )  # fmt: skip
        assert await orders.waiting_for(order_id) is None
        app = api_of(Operations(orders, StateDir(tmp_path), {}), None)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            stream = await http.get(f"/agent-work-orders/{order_id}/logs/stream")
        last = stream.text.split("\n\n")[-2]
        assert "event: end\n" in last, last
        over = (await OrderDecisions(orders).move(order_id, MoveCall(to=Target.DONE, who="ann"))).task
        assert (over.id, over.stage, over.status) == (order_id, "done", "completed")


async def is_forgotten(client: Client, order_id: str) -> bool:
    """Say whether the server has forgotten a work order."""
    try:
        await client.get_workflow_handle(order_id).describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    return False


async def test_work_that_goes_on_ends_its_watch_and_is_watched_again(client: Client, doubles: Doubles) -> None:
    """A completed work order is implemented again with the feedback; no watch runs until its next completion."""
    async with watched(client, doubles) as watch:
        order_id = watch.id.removesuffix("/pr")
        orders = WorkOrders(client, doubles.task_queue)
        first = client.get_workflow_handle(watch.id, run_id=(await watch.describe()).run_id)
        await OrderDecisions(orders).move(order_id, MoveCall(to=Target.EXECUTING, feedback="Mind the tests."))
        assert (await first.describe()).status is WorkflowExecutionStatus.CANCELED
        assert (await orders.wait(order_id)).stage == "review"
        assert doubles.calls_of(Step.IMPLEMENT_PLAN)[-1].reasons == ("A person says: Mind the tests.",)
        assert doubles.names().count("build_plan") == 1
        again = client.get_workflow_handle(watch.id)
        assert (await again.describe()).status is WorkflowExecutionStatus.RUNNING
        assert (await found(again))[1].stage == "review"
        await again.terminate()


async def test_a_watch_that_is_cancelled_gives_its_row_back(client: Client, doubles: Doubles) -> None:
    """When the work continues, the watch ends and loses its search attributes, so that no list counts it."""
    async with watched(client, doubles, "pull_request/cancelled") as watch:
        await watch.cancel()
        ended = await failure_of(watch)
        description = await watch.describe()
    assert isinstance(ended, CancelledError)
    assert description.status is WorkflowExecutionStatus.CANCELED
    assert "SeptetStage" not in {pair.key.name for pair in description.typed_search_attributes}


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
def hosted() -> Doubles:
    made = Doubles(task_queue=f"queue-{uuid.uuid4().hex}")

    def opened(asked: OpenWorkspace) -> Workspace:
        where = {"serves": (PULL_REQUESTS,), "control_queue": f"{made.task_queue}-host"}
        return made.workspace(asked).model_copy(update=where)

    return replace(made, open_workspace=opened)


@asynccontextmanager
async def looking(
    client: Client, hosted: Doubles, forge: FakeForge, host: str = "host"
) -> AsyncIterator[PullRequestWatcher]:
    """Let a host look repeatedly while the block lasts."""
    here = WatchingHost(host=host, control_queue=f"{hosted.task_queue}-{host}")
    watcher = PullRequestWatcher(client, hosted.task_queue, here, forge.look, PACE)

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


async def test_a_merge_is_told_by_the_host(client: Client, hosted: Doubles) -> None:
    """Looks at an open pull request leave no activity and no timer in the history; the merge ends the watch."""
    forge = FakeForge()
    async with watched(client, hosted) as watch, looking(client, hosted, forge):
        await wait_until(lambda: forge.looks >= 1)
        before = await kinds_of(watch)
        await wait_until(lambda: forge.looks >= 4)
        assert await kinds_of(watch) == before
        forge.state = "merged"
        assert (await result_of(watch)).stage == "done"
        kinds = await kinds_of(watch)
        order = await WorkOrders(client, hosted.task_queue).get(watched_order(watch.id))
        told, row = await found(watch)
        (move,) = await watch.query(PullRequestWorkflow.history)
    assert not hosted.looks
    assert kinds["activity_task_scheduled_event_attributes"] == kinds["timer_started_event_attributes"] == 0
    assert kinds["workflow_execution_signaled_event_attributes"] == 1
    assert (order.stage, told["SeptetStage"], row.stage) == ("done", "done", "done")
    assert (move.came_from, move.to, move.why) == ("review", "done", "the pull request is merged")


async def test_a_close_is_told_and_one_that_was_opened_again_is_looked_at(client: Client, hosted: Doubles) -> None:
    """A close without a merge blocks the task; after a nudge the host looks again and finds the merge."""
    forge = FakeForge()
    forge.state = "closed"
    async with watched(client, hosted, "pull_request/seen-by-host") as watch, looking(client, hosted, forge):
        ask = lambda: watch.query(PullRequestWorkflow.work_order)  # noqa: E731
        await wait_until(ask, lambda task: task.stage is Stage.BLOCKED)
        forge.state = "merged"
        await watch.signal(PullRequestWorkflow.nudge)
        assert (await result_of(watch)).stage == "done"


async def test_a_forge_that_is_away_is_told_once(client: Client, hosted: Doubles) -> None:
    """The task shows why the look fails as the reason of its wait, until the forge is back."""
    forge = FakeForge()
    forge.is_away = True
    async with watched(client, hosted) as watch:
        orders, order_id = WorkOrders(client, hosted.task_queue), watched_order(watch.id)
        assert await orders.waiting_for(order_id) is None
        async with looking(client, hosted, forge):
            told = await wait_until(lambda: orders.waiting_for(order_id))
            assert "The forge is away." in told
            forge.is_away = False
            await wait_until(lambda: orders.waiting_for(order_id), lambda waits: waits is None)
            forge.state = "merged"
            assert (await result_of(watch)).stage == "done"


async def test_another_host_takes_over_from_one_that_is_gone(client: Client, hosted: Doubles) -> None:
    """No worker serves the first host: the second host looks, records its name, and finds the merge."""
    forge = FakeForge()
    async with (
        watched(client, hosted, "pull_request/taken-over") as watch,
        looking(client, hosted, forge, "second"),
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
    client: Client, hosted: Doubles, signal: str, content: Any
) -> None:
    """A signal that arrives before a worker runs fails no workflow task, and the start does not overwrite it."""
    first = WatchingHost(host="first", control_queue="first")
    watch = await client.start_workflow(
        PullRequestWorkflow.run,
        PullRequestWatch(task=TASK, forge="github", watcher=first),
        id=f"wo-{uuid.uuid4().hex[:8]}/pr",
        task_queue=hosted.task_queue,
        start_signal=signal,
        start_signal_args=[content],
    )
    async with Worker(client, task_queue=hosted.task_queue, workflows=[PullRequestWorkflow]):
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


async def test_a_host_that_is_there_keeps_its_pull_requests(client: Client, hosted: Doubles) -> None:
    """While the first host's worker polls, the second host does not look at its pull requests."""
    own, other = FakeForge(), FakeForge()
    queue = f"{hosted.task_queue}-host"
    async with (
        Worker(client, task_queue=queue, activities=hosted.activities()),
        watched(client, hosted) as watch,
        looking(client, hosted, own),
        looking(client, hosted, other, "second"),
    ):
        await wait_until(lambda: own.looks >= 3)
        own.state = "merged"
        await result_of(watch)
    assert other.looks == 0


async def test_a_forge_that_hangs_holds_no_other_up(client: Client, hosted: Doubles) -> None:
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

    async with watched(client, hosted) as watch:
        other = await start(client, hosted.task_queue, repository="/hangs")
        await result_of(other)
        here = WatchingHost(host="host", control_queue=f"{hosted.task_queue}-host")
        watcher = PullRequestWatcher(client, hosted.task_queue, here, look, PACE)
        try:
            await wait_until(watcher.look_around, lambda _: "/hangs" in names)
            await wait_until(watcher.look_around, lambda _: goes_on.looks > 0)
            assert (await result_of(watch)).stage == "done"
        finally:
            hangs.set()
            await watcher.close()
            await client.get_workflow_handle(watch_id(other.id)).terminate()
    assert names.count("/hangs") == 1


async def test_what_no_host_can_see_is_told(client: Client, hosted: Doubles) -> None:
    """If the repository is on the disk of a lost host, the task waits for this host."""
    forge = FakeForge()
    forge.is_away = True
    async with watched(client, hosted) as watch, looking(client, hosted, forge, "second"):
        orders = WorkOrders(client, hosted.task_queue)
        told = await wait_until(lambda: orders.waiting_for(watched_order(watch.id)))
    assert "host host, which watched it, is gone" in told
