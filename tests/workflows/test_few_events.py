"""The events of a work order's history besides its activities: each event is stored, and each command costs money."""

from collections import Counter

import pytest
from fakes.activities import Doubles
from fakes.running import result_of, worker_of
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput

pytestmark = pytest.mark.asyncio(loop_scope="session")

ACTIVITIES = 8


async def completed(client: Client, doubles: Doubles) -> list[HistoryEvent]:
    """Carry out a work order that its client describes, and return its events."""
    async with worker_of(client, doubles):
        orders = WorkOrders(client, doubles.task_queue)
        asked = WorkOrderInput(repository="/app", title="Totals are wrong", project="app", agent="double")
        order_id = (await orders.put(asked)).id
        await result_of(orders.handle(order_id))
        await client.get_workflow_handle(f"{order_id}/pr").terminate()
        return [event async for event in orders.handle(order_id).fetch_history_events()]


async def test_a_work_order_that_begins_at_once_has_few_events(client: Client, doubles: Doubles) -> None:
    """A work order has at most 63 events, 48 of them of its eight activities; a timed-out workflow task counts once."""
    kinds = Counter(str(event.WhichOneof("attributes")) for event in await completed(client, doubles))
    assert kinds["activity_task_scheduled_event_attributes"] == ACTIVITIES
    of_tasks = sum(count for kind, count in kinds.items() if kind.startswith("workflow_task_"))
    assert kinds.total() - of_tasks + 3 * kinds["workflow_task_completed_event_attributes"] <= 63
