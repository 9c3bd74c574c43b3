"""The rows of the board, from memo and search attributes on a real server, without a worker."""

import uuid

import pytest
from fakes.waiting import wait_until
from temporalio.client import Client

from clients.temporal.board import BoardRows
from clients.temporal.work_orders import WorkOrders
from septet.contracts.board import MEMO
from septet.contracts.names import Stage, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request import PullRequestWatch
from septet.contracts.task import Task
from septet.errors import AlreadyRunningError, CircleError, InvalidInputError, NotFoundError
from workflows.wire.search_attributes import start_attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def project() -> str:
    """A project for this test alone."""
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


async def put_watch(client: Client, task: Task) -> None:
    """Start the watch of a work order, as the work order does."""
    await client.start_workflow(
        "PullRequest",
        PullRequestWatch(task=task, forge="local"),
        id=f"{task.id}/pr",
        task_queue="nobody-serves-this",
        memo={MEMO: task},
        search_attributes=start_attributes(task),
    )


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
        await put_watch(orders.client, task)
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

    async def is_told() -> bool:
        return (await rows.counts(project)).stages[Stage.DONE] == 1

    await wait_until(is_told)
    (task,) = (await rows.rows(project)).tasks
    assert (task.status, task.stage) == ("cancelled", "done")
    assert (task.error and task.error.type, task.error and task.error.remedy) == (
        "Terminated",
        f"Continue it: septet retry {order_id}",
    )
    assert sum((await rows.counts(project)).stages.values()) == 1


@pytest.mark.parametrize("after", ["no place", "ä"])
async def test_a_place_in_no_list_is_refused(orders: WorkOrders, after: str) -> None:
    """A value other than a page's `next` is wrong input, not an error of the server."""
    with pytest.raises(NotFoundError, match="is not the `next` of a list"):
        await BoardRows(orders.client).rows(after=after)


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
