"""What a work order writes into its history beside its activities: each event is kept, and each command is paid."""

import asyncio
import uuid
from collections import Counter

import pytest
from fakes.activities import Doubles
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.worker import Worker

from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
ACTIVITIES = 8


@pytest.fixture
def doubles() -> Doubles:
    return Doubles(task_queue=f"queue-{uuid.uuid4().hex}")


async def completed(client: Client, doubles: Doubles) -> list[HistoryEvent]:
    """Carry out a work order that its client describes, and return its history."""
    workflows = [WorkOrder, PullRequestWorkflow]
    async with Worker(client, task_queue=doubles.task_queue, workflows=workflows, activities=doubles.activities()):
        orders = WorkOrders(client, doubles.task_queue)
        asked = WorkOrderInput(repository="/app", title="Totals are wrong", project="app", agent="double")
        order_id = (await orders.put(asked)).id
        await asyncio.wait_for(orders.handle(order_id).result(), WITHIN_SECONDS)
        await client.get_workflow_handle(f"{order_id}/pr").terminate()
        return [event async for event in orders.handle(order_id).fetch_history_events()]


async def test_a_stage_is_one_upsert(client: Client, doubles: Doubles) -> None:
    """What the client wrote is not written again; the end writes the attributes once, and the memo once."""
    counts = Counter(str(event.WhichOneof("attributes")) for event in await completed(client, doubles))
    assert counts["upsert_workflow_search_attributes_event_attributes"] <= 2
    assert counts["workflow_properties_modified_event_attributes"] == 1


async def test_a_work_order_that_begins_at_once_has_few_events(client: Client, doubles: Doubles) -> None:
    """At most 63, of which 48 are those of its eight activities; a workflow task that load ends too late counts once."""
    kinds = Counter(str(event.WhichOneof("attributes")) for event in await completed(client, doubles))
    assert kinds["activity_task_scheduled_event_attributes"] == ACTIVITIES
    of_tasks = sum(count for kind, count in kinds.items() if kind.startswith("workflow_task_"))
    assert kinds.total() - of_tasks + 3 * kinds["workflow_task_completed_event_attributes"] <= 63
