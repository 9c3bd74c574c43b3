"""A client with a payload codec: the codec decodes histories and rows before the client reads them."""

import asyncio
import base64
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes.activities import Doubles
from fakes.waiting import wait_until
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from temporalio.worker import Worker

from clients.temporal.board import BoardRows
from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.errors import AlreadyRunningError
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
ORDER = WorkOrderInput(repository="/app", title="Totals are wrong")


class Sealing(PayloadCodec):
    """A codec that makes payloads unreadable for a client without the codec."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/sealed"}, data=base64.b85encode(payload.SerializeToString()))
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(base64.b85decode(payload.data)) for payload in payloads]


@pytest.fixture
def sealed(client: Client) -> Client:
    """A client on the same server, with a codec."""
    config = client.config()
    converter = replace(
        client.data_converter,
        payload_codec=Sealing(),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
    config["data_converter"] = converter
    return Client(**config)


async def test_a_key_starts_once_also_with_a_codec(sealed: Client, doubles: Doubles) -> None:
    """The same key and input return the same work order; the key with another input is refused."""
    workflows = [WorkOrder, PullRequestWorkflow]
    async with Worker(sealed, task_queue=doubles.task_queue, workflows=workflows, activities=doubles.activities()):
        orders = WorkOrders(sealed, doubles.task_queue)
        first, again = [await orders.run(ORDER, key=doubles.task_queue) for _ in range(2)]
        assert first.task.id == again.task.id
        with pytest.raises(AlreadyRunningError):
            await orders.run(ORDER.model_copy(update={"title": "Another"}), key=doubles.task_queue)
        task = await asyncio.wait_for(orders.wait(first.task.id), WITHIN_SECONDS)
        assert (task.title, task.status) == ("Totals are wrong", "completed")
        await sealed.get_workflow_handle(f"{task.id}/pr").terminate()


async def test_rows_are_opened_by_the_codec(sealed: Client) -> None:
    """The board shows the titles of work orders whose memos are sealed."""
    project = uuid.uuid4().hex
    orders = WorkOrders(sealed, "nobody-serves-this")
    await orders.put(ORDER.model_copy(update={"project": project}))

    async def titles() -> list[str]:
        return [task.title for task in (await BoardRows(sealed).rows(project)).tasks]

    assert await wait_until(titles) == ["Totals are wrong"]


async def test_what_a_work_order_waits_for_is_opened_by_the_codec(sealed: Client, doubles: Doubles) -> None:
    """`waiting_for` shows the last failure of a waiting work order in clear text."""
    workflows = [WorkOrder, PullRequestWorkflow]
    async with Worker(sealed, task_queue=doubles.task_queue, workflows=workflows, activities=doubles.activities()):
        orders = WorkOrders(sealed, doubles.task_queue)
        order_id = (await orders.put(ORDER.model_copy(update={"after": ("wo-other",)}))).id
        told = await wait_until(lambda: orders.waiting_for(order_id), lambda told: told and "over" in told)
        assert told is not None
        assert "not over: wo-other" in told
        await orders.handle(order_id).terminate()
