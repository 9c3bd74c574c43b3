"""Rows and counts of the board and of lists, also of work orders that a reset takes up again."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
from fakes.activities import ANSWERS, Doubles, done, ended
from fakes.running import failure_of, replayed, start, worker_of
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from clients.executions.index import runs_of
from clients.temporal.board import BoardRows
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.contracts.decisions import MoveCall, RetryCall, Target
from septet.contracts.facts import Usage
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request_watch import PullRequestWatch
from septet.contracts.replies import TaskReply
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Move, Task
from septet.contracts.task_rows import MEMO
from septet.errors import (
    AlreadyRunningError,
    CircleError,
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
)
from workflows.tracker_session import TrackerReport
from workflows.wire.search_attributes import TAKEN_UP_AGAIN, start_attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60


@asynccontextmanager
async def served(client: Client, doubles: Doubles) -> AsyncIterator[WorkOrders]:
    """Yield the typed client of a queue with a worker."""
    async with worker_of(client, doubles):
        yield WorkOrders(client, doubles.task_queue)


async def closed(orders: WorkOrders, project: str) -> Task:
    order = WorkOrderInput(repository="/app", title="Totals are wrong", project=project)
    return await asyncio.wait_for(orders.wait((await orders.put(order)).id), WITHIN_SECONDS)


async def counted(client: Client, project: str, **expected: int) -> None:
    """Wait until a board with more than one page has these counts."""

    async def counts() -> dict[str, int]:
        board = await BoardRows(client).page(project, limit=1)
        return {stage.value: count for stage, count in board.counts.items() if count}

    await wait_until(counts, lambda seen: seen == expected)


async def test_one_that_is_taken_up_again_counts_once(client: Client, doubles: Doubles) -> None:
    """On a board or a list with more than one page, each work order counts in its present stage, whatever its retries."""
    project = f"o/{uuid.uuid4().hex}"
    doubles.steps[Step.CLASSIFY_ISSUE] = [lambda call: ended(call, Verdict.FAILED, "no such model")]
    async with served(client, doubles) as orders:
        tasks = [await closed(orders, project) for _ in range(3)]
        assert {task.status for task in tasks} == {Status.FAILED}
        await counted(client, project, blocked=3)
        for _ in range(2):
            await OrderDecisions(orders).retry(tasks[0].id)
            assert (await asyncio.wait_for(orders.wait(tasks[0].id), WITHIN_SECONDS)).status is Status.FAILED
        await counted(client, project, blocked=3)
        page = partial(orders.list, OrderFilter(repository=project), limit=2)
        await wait_until(page, lambda seen: [each.id for each in seen.tasks] == [tasks[0].id, tasks[2].id])
        doubles.steps[Step.CLASSIFY_ISSUE] = [done]
        for task in tasks[:2]:
            await OrderDecisions(orders).retry(task.id)
            assert (await asyncio.wait_for(orders.wait(task.id), WITHIN_SECONDS)).stage is Stage.REVIEW
        await counted(client, project, blocked=1, review=2)
        assert (await BoardRows(client).page(None, limit=1)).summary.total >= 3


async def test_one_that_was_cancelled_as_it_waited_on_the_board_is_taken_up(
    client: Client, doubles: Doubles
) -> None:
    """The work order waits for its turn; only the signal of the retry says that it was reset."""
    order = WorkOrderInput(repository="/app", title="Totals are wrong", stage="collected")
    async with served(client, doubles) as orders:
        decisions = OrderDecisions(orders)
        task = await orders.put(order)
        await wait_until(lambda: orders.history(task.id))
        assert (await decisions.cancel(task.id, "ann")).task.status is Status.CANCELLED
        await decisions.retry(task.id, RetryCall(who="bob", why="so", feedback="Round once."))
        moves = await taken_up(orders, task.id, "bob")
        assert (moves[-1].to, moves[-1].why) == ("triaged", "so")
        await orders.handle(task.id).signal("begin")  # as the board does with a seat
        again = await asyncio.wait_for(orders.wait_for_end(task.id), WITHIN_SECONDS)
        assert again.status is Status.COMPLETED
        assert any("Round once." in reason for reason in doubles.calls_of(Step.CLASSIFY_ISSUE)[0].reasons)
        assert (await orders.describe(task.id)).typed_search_attributes.get(TAKEN_UP_AGAIN)


async def test_one_that_comes_after_others_does_so_when_it_is_taken_up(client: Client, doubles: Doubles) -> None:
    """A retried work order that was cancelled while it waited for another waits again; its history has the person."""
    async with served(client, doubles) as orders:
        decisions = OrderDecisions(orders)
        first = await orders.put(WorkOrderInput(repository="/app", title="First", stage="collected"))
        task = await orders.put(WorkOrderInput(repository="/app", title="Second", after=(first.id,)))
        await wait_until(lambda: orders.history(task.id))
        await decisions.cancel(task.id, "ann")
        await decisions.retry(task.id, RetryCall(who="bob"))
        moves = await taken_up(orders, task.id, "bob")
        assert (moves[-1].to, moves[-1].why) == ("triaged", "retried")
        assert (await orders.get(task.id)).status is Status.PENDING
        assert doubles.calls_of(Step.CLASSIFY_ISSUE) == []
        for each in (task, first):
            await decisions.cancel(each.id, "ann")


async def test_a_history_tells_what_earlier_tries_used(client: Client, doubles: Doubles) -> None:
    """Without a worker, the history gives the same total as a worker: earlier tries and each step."""
    used, go = Usage(input_tokens=900, output_tokens=100, cost_usd=0.25), asyncio.Event()

    def fails(call: StepCall) -> StepResult:
        return ended(call, Verdict.FAILED, "no such model").model_copy(update={"usage": used})

    async def waits(call: StepCall) -> StepResult:
        await go.wait()
        return done(call)

    doubles.steps[Step.IMPLEMENT_PLAN] = [fails]
    async with served(client, doubles) as orders:
        task = await closed(orders, "o/r")
        tries = doubles.names().count("implement_plan")
        doubles.steps[Step.IMPLEMENT_PLAN] = [waits]
        await OrderDecisions(orders).retry(task.id)
        await wait_until(lambda: asyncio.sleep(0), lambda _: doubles.names().count("implement_plan") > tries)
        asked, read = await orders.get(task.id), await orders.without_worker(await orders.describe(task.id))
        assert (read.usage, read.earlier_tokens) == (asked.usage, 1000 * tries)
        go.set()
        assert (await asyncio.wait_for(orders.wait_for_end(task.id), WITHIN_SECONDS)).status is Status.COMPLETED
        await replayed(client.get_workflow_handle(task.id), "histories/retried")


async def test_a_session_of_a_tracker_is_told_of_each_further_failure(client: Client, doubles: Doubles) -> None:
    """The session's workflow has ended: a retry that fails reports to the session itself."""
    doubles.steps[Step.IMPLEMENT_PLAN] = [lambda call: ended(call, Verdict.REFUSED, "no")]
    tracked = {"tracker": "linear", "id": "0b4a", "key": "ENG-12", "session": "5e55"}
    async with worker_of(client, doubles, TrackerReport):
        handle = await start(client, doubles.task_queue, title=None, tracker=tracked)
        await failure_of(handle)
        await OrderDecisions(WorkOrders(client, doubles.task_queue)).retry(handle.id)
        await failure_of(handle)
        await replayed(handle, "histories/failed-again")
        history = await handle.fetch_history()
    started = [each.start_child_workflow_execution_initiated_event_attributes for each in history.events]
    (report,) = [each.workflow_id for each in started if each.workflow_type.name == "TrackerReport"]
    await client.get_workflow_handle(report).terminate()


async def test_of_two_retries_at_once_one_counts(client: Client, doubles: Doubles) -> None:
    """Of two retries at the same moment one takes the work order up; the other is refused with the reason."""
    doubles.steps[Step.CLASSIFY_ISSUE] = [lambda call: ended(call, Verdict.FAILED, "no such model")]
    async with served(client, doubles) as orders:
        task = await closed(orders, "o/r")
        doubles.steps[Step.CLASSIFY_ISSUE] = [done]
        tries = doubles.names().count("classify_issue")
        both = await asyncio.gather(
            *(OrderDecisions(orders).retry(task.id, RetryCall(who=who, why="so")) for who in ("ann", "bob")),
            return_exceptions=True,
        )
        refused, reply = sorted(both, key=lambda each: isinstance(each, TaskReply))
        assert isinstance(refused, RefusedTransitionError)
        assert isinstance(reply, TaskReply)
        assert any(words in str(both) for words in ("right now", "is running"))
        assert (await asyncio.wait_for(orders.wait(task.id), WITHIN_SECONDS)).status is Status.COMPLETED
        assert await runs(client, task.id) == 2
        assert doubles.names().count("classify_issue") == tries + 1
        (who,) = [move.who for move in await orders.history(task.id) if move.why == "so"]
        assert who == ("ann" if isinstance(both[0], TaskReply) else "bob")
        claims = f'WorkflowId="{task.id}/again"'
        await wait_until(lambda: client.count_workflows(claims), lambda found: not found.count)


async def test_what_is_done_is_not_taken_up(client: Client, doubles: Doubles) -> None:
    """A work order with a merged pull request cannot be retried: more work needs another work order."""
    doubles.pull_requests[ANSWERS[Step.CREATE_PULL_REQUEST]] = "merged"
    async with served(client, doubles) as orders:
        task = await closed(orders, "o/r")
        await wait_until(lambda: orders.get(task.id), lambda task: task.stage is Stage.DONE)
        with pytest.raises(RefusedTransitionError, match="is done"):
            await OrderDecisions(orders).retry(task.id, RetryCall(from_step=Step.IMPLEMENT_PLAN))


async def test_what_was_refused_at_the_start_is_not_taken_up(client: Client, doubles: Doubles) -> None:
    """A retry of a wrong input is refused; its remedy cancels the work order and works."""
    async with served(client, doubles) as orders:
        order_id = f"wo-{uuid.uuid4().hex[:8]}"
        order = {"repositry": "/app", "title": "T"}
        handle = await client.start_workflow("WorkOrder", order, id=order_id, task_queue=doubles.task_queue)
        await failure_of(handle)
        assert await orders.waiting_for(order_id) is None
        decisions = OrderDecisions(orders)
        with pytest.raises(RefusedTransitionError, match="cannot continue: .*repositry is not a known") as refused:
            await decisions.retry(order_id)
        assert f"septet move {order_id} cancelled" in refused.value.remedy
        reply = await decisions.move(order_id, MoveCall(to=Target.CANCELLED))
        assert (reply.task.status, reply.task.stage) == ("cancelled", "done")

        async def is_gone() -> bool:
            try:
                await orders.get(order_id)
            except NotFoundError:
                return True
            return False

        await wait_until(is_gone)


async def taken_up(orders: WorkOrders, order_id: str, who: str) -> Sequence[Move]:
    """Wait until the last move of a work order is of this person, and return its moves."""
    return await wait_until(
        lambda: orders.history(order_id), lambda moves: any(move.who == who for move in moves[-1:])
    )


async def runs(client: Client, order_id: str) -> int:
    """Return the number of runs of a work order, after the server lists its last run as completed."""

    def is_listed(found: list[WorkflowExecution]) -> bool:
        return any(run.status is WorkflowExecutionStatus.COMPLETED for run in found)

    found = await wait_until(lambda: runs_of(client, [order_id]), is_listed)
    return len(found)


@pytest.fixture
def project() -> str:
    return f"o/it's {uuid.uuid4().hex} ünd"


@pytest.fixture
def orders(client: Client) -> WorkOrders:
    return WorkOrders(client, "nobody-serves-this")


def order(project: str, **fields: object) -> WorkOrderInput:
    return WorkOrderInput.model_validate(
        {"repository": "/app", "title": "T", "description": "d" * 300, "project": project, **fields}, strict=False
    )


async def put(orders: WorkOrders, project: str, **fields: object) -> str:
    """Start a work order on a queue without a worker, and return its id."""
    return (await orders.put(order(project, **fields))).id


async def test_a_work_order_is_on_the_board_as_soon_as_it_is_started(orders: WorkOrders, project: str) -> None:
    """The row has all given fields before a worker has seen the work order; a long description is cut."""
    rows = BoardRows(orders.client)
    order_id = await put(orders, project, stage="collected", priority=5, after=["wo-a"])
    await wait_until(lambda: _has(rows, project, 1))
    (task,) = (await rows.rows(project)).tasks
    assert (task.id, task.stage, task.status) == (order_id, "collected", "pending")
    assert (task.score, task.after, len(task.description)) == (5, ("wo-a",), 200)
    with pytest.raises(AlreadyRunningError):
        await orders.put(order(project), order_id)


async def test_pages_hold_each_task_once(orders: WorkOrders, project: str) -> None:
    """Three pages have seven tasks, newest first; the counts are of all pages."""
    rows = BoardRows(orders.client)
    ids = [await put(orders, project, stage="triaged") for _ in range(7)]
    await wait_until(lambda: _has(rows, project, 7))
    first = await rows.page(project, limit=3)
    assert first.next is not None
    second = await rows.page(project, after=first.next, limit=3)
    third = await rows.page(project, after=second.next or "", limit=3)
    pages = [[task.id for task in page.stages[Stage.TRIAGED]] for page in (first, second, third)]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [order_id for page in pages for order_id in page] == ids[::-1]
    assert {page.counts[Stage.TRIAGED] for page in (first, second, third)} == {7}
    assert (third.next, first.summary.total) == (None, 7)
    assert [task.id async for task in rows.all(project)] == ids[::-1]


async def test_the_row_of_a_task_is_its_watchs_once_there_is_one(orders: WorkOrders, project: str) -> None:
    """A task in review, done or blocked by its pull request counts once, in the stage of its watch."""
    rows = BoardRows(orders.client)
    for stage in (Stage.REVIEW, Stage.DONE, Stage.BLOCKED):
        order_id = await put(orders, project)
        task = Task(id=order_id, project=project, status=Status.COMPLETED, stage=stage)
        await orders.client.get_workflow_handle(order_id).terminate()
        await orders.client.start_workflow(
            "PullRequest",
            PullRequestWatch(task=task, forge="local"),
            id=f"{order_id}/pr",
            task_queue="nobody-serves-this",
            memo={MEMO: task},
            search_attributes=start_attributes(task),
        )
    await put(orders, project)

    async def each_is_where_it_is() -> bool:
        stages = (await rows.page(project)).stages
        return {stage for stage, tasks in stages.items() if len(tasks) == 1} == {
            "review", "done", "blocked", "executing",
        }  # fmt: skip

    await wait_until(each_is_where_it_is)
    board = await rows.page(project)
    assert board.counts == {stage: len(tasks) for stage, tasks in board.stages.items()}
    assert board.summary.model_dump() == {"total": 4, "in_progress": 1, "blocked": 1, "completed": 3}


async def test_one_that_was_terminated_is_told_as_over(orders: WorkOrders, project: str) -> None:
    """A terminated work order records no end: rows and counts show it as cancelled and done."""
    rows = BoardRows(orders.client)
    order_id = await put(orders, project, stage="triaged")
    await wait_until(lambda: _has(rows, project, 1))
    await orders.client.get_workflow_handle(order_id).terminate()
    await wait_until(lambda: rows.counts(project), lambda counts: counts.stages[Stage.DONE] == 1)
    (task,) = (await rows.rows(project)).tasks
    assert (task.status, task.stage) == ("cancelled", "done")
    assert (task.error and task.error.type, task.error and task.error.remedy) == (
        "Terminated",
        f"Continue it: septet retry {order_id}",
    )
    assert sum((await rows.counts(project)).stages.values()) == 1


@pytest.mark.parametrize("name", ['a"b', "a\\"])
async def test_a_project_that_the_server_cannot_find_is_refused(orders: WorkOrders, name: str) -> None:
    """A name with a quote or a backslash is refused instead of put into a query that finds nothing."""
    with pytest.raises(InvalidInputError, match="cannot be asked for"):
        await BoardRows(orders.client).rows(name)


async def test_a_circle_of_work_orders_is_refused(orders: WorkOrders, project: str) -> None:
    """A work order after itself is refused, and so is the last work order of a circle; the others stay."""
    first, second, third = (f"wo-{uuid.uuid4().hex[:8]}" for _ in range(3))
    with pytest.raises(CircleError, match=f"{first} after {first}"):
        await orders.put(order(project, after=[first]), first)
    await orders.put(order(project, after=[second]), first)
    await orders.put(order(project, after=[third, "wo-nobody"]), second)
    with pytest.raises(CircleError, match=f"{third} after {first} after {second} after {third}"):
        await orders.put(order(project, after=[first]), third)
    await orders.put(order(project), third)
    await wait_until(lambda: _has(BoardRows(orders.client), project, 3))


async def _has(rows: BoardRows, project: str, count: int) -> bool:
    return len((await rows.rows(project)).tasks) == count
