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
from septet.errors import AlreadyRunningError, InvalidInputError
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


@pytest.mark.parametrize("name", ['a"b', "a\\"])
async def test_a_project_that_the_server_cannot_find_is_refused(orders: WorkOrders, name: str) -> None:
    """A name with a quote or a backslash is refused instead of put into a query that finds nothing."""
    with pytest.raises(InvalidInputError, match="cannot be asked for"):
        await BoardRows(orders.client).rows(name)


async def _has(rows: BoardRows, project: str, count: int) -> bool:
    return len((await rows.rows(project)).tasks) == count
