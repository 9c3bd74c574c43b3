"""Decisions for a workflow that no worker has cached: its first task and the decision come together."""

import uuid

import pytest
from fakes.activities import Doubles
from fakes.running import worker_of
from temporalio.client import Client
from temporalio.worker import Worker

from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.board import MEMO
from septet.contracts.decisions import MoveCall, Target
from septet.contracts.names import Stage, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request import PullRequestWatch, WatchingHost
from septet.contracts.task import Task
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.wire.search_attributes import start_attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")


def uncached(client: Client, doubles: Doubles) -> Worker:
    """Return a worker that forgets each workflow after each of its tasks, like a worker that has just started."""
    return worker_of(client, doubles, max_cached_workflows=0, max_concurrent_workflow_task_polls=1)


async def test_a_watch_takes_a_move(client: Client, doubles: Doubles) -> None:
    """A watch on a host has started no activity yet; it still takes and keeps the first move."""
    order_id = f"wo-{uuid.uuid4().hex[:8]}"
    url = "file:///origin.git/pull/1"
    task = Task(id=order_id, project="o/r", status=Status.COMPLETED, stage=Stage.REVIEW, pr_url=url)
    watcher = WatchingHost(host="host-1", control_queue="nobody-serves-this")
    async with uncached(client, doubles):
        watch = await client.start_workflow(
            PullRequestWorkflow.run,
            PullRequestWatch(task=task, forge="local", watcher=watcher),
            id=f"{order_id}/pr",
            task_queue=doubles.task_queue,
            memo={MEMO: task},
            search_attributes=start_attributes(task),
        )
        moved = await watch.execute_update(PullRequestWorkflow.move, MoveCall(to=Target.DONE, who="ann"))
        assert (moved.stage, (await watch.result()).stage) == (Stage.DONE, Stage.DONE)


async def test_a_collected_work_order_takes_a_move(client: Client, doubles: Doubles) -> None:
    """The work order waits for a person, and has started no activity yet."""
    async with uncached(client, doubles):
        orders = WorkOrders(client, doubles.task_queue)
        order = WorkOrderInput(repository="/app", title="T", stage="collected")
        task = await orders.put(order)
        reply = await OrderDecisions(orders).move(task.id, MoveCall(to=Target.CANCELLED, who="ann"))
        assert (await orders.wait(reply.task.id)).status is Status.CANCELLED
