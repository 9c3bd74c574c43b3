"""After a completed work order: a workflow watches its pull request, and has the task's row on the board."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.activities import Doubles
from fakes.running import failure_of, result_of, watched
from fakes.waiting import wait_until
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.task_rows import task_of_row
from clients.http.app import api_of
from clients.operations.operations import Operations
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import MoveCall, Target
from septet.contracts.task import Task
from septet.state import StateDir
from workflows.pull_request.pull_request import PullRequestWorkflow

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "file:///origin.git/pull/1"


async def found(handle: WorkflowHandle[Any, Any]) -> tuple[dict[str, Any], Task]:
    """Return the search attributes of a workflow, and its row as lists show it."""
    description = await handle.describe()
    told = {pair.key.name: pair.value for pair in description.typed_search_attributes}
    return told, await task_of_row(description)


async def test_a_merge_makes_the_task_done(client: Client, doubles: Doubles) -> None:
    """The look that finds the merge ends the watch, and the board shows the task as done."""
    async with watched(client, doubles, "pull_request/merged") as watch:
        doubles.pull_requests[URL] = "merged"
        task = await result_of(watch)
        told, row = await found(watch)
        history = await watch.query(PullRequestWorkflow.history)
    assert (task.stage, task.status, task.error) == ("done", "completed", None)
    assert (told["SeptetStage"], row.stage) == ("done", "done")
    assert [(move.came_from, move.to, move.why) for move in history] == [
        ("review", "done", "the pull request is merged")
    ]


async def test_a_person_moves_the_task(client: Client, doubles: Doubles) -> None:
    """A person can move the task to done and to blocked; a refusal names the allowed moves, and leaves no event."""
    async with watched(client, doubles, "pull_request/blocked-and-done") as watch:
        await wait_until(lambda: len(doubles.looks) >= 2)
        for to, allowed in (("triaged", "executing, done, blocked"), ("executing", "continues the work")):
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await watch.execute_update(PullRequestWorkflow.move, MoveCall(to=Target(to)))
            assert allowed in str(refused.value.cause)
        kinds = [event.WhichOneof("attributes") for event in await events(watch)]
        assert not [kind for kind in kinds if kind.startswith("workflow_execution_update")]
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
    """A pull request may stay open for longer than the server's retention; its task can still be read and moved.

    The stream of its logs ends like the stream of each closed work order.
    """
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
    """No watch runs while a completed work order runs again, until its next completion."""
    async with watched(client, doubles) as watch:
        order_id = watch.id.removesuffix("/pr")
        orders = WorkOrders(client, doubles.task_queue)
        first = client.get_workflow_handle(watch.id, run_id=(await watch.describe()).run_id)
        await OrderDecisions(orders).move(order_id, MoveCall(to=Target.EXECUTING, feedback="Mind the tests."))
        assert (await first.describe()).status is WorkflowExecutionStatus.CANCELED
        assert (await orders.wait(order_id)).stage == "review"
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


async def events(handle: WorkflowHandle[Any, Any]) -> list[Any]:
    return [event async for event in handle.fetch_history_events()]
