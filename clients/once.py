"""A start that may be asked for again: a key stands for one work order."""

from hashlib import sha256

from pydantic import ValidationError
from temporalio.service import RPCError

from clients._refused import refused_of
from clients.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.errors import AlreadyRunningError


async def start_once(orders: WorkOrders, order: WorkOrderInput, key: str, order_id: str | None = None) -> Task:
    """Start a work order, or return the one that was started with the same key and the same input.

    The key gives the id where none is named, so that the server itself refuses a second start.

    Raises:
        AlreadyRunningError: The id or the key was used before, with another input.
        InvalidInputError: It is no id.
        ServerNotReachedError: The server refused.
    """
    order_id = order_id if order_id is not None else f"wo-{sha256(key.encode()).hexdigest()[:16]}"
    try:
        return await orders.start(order, order_id)
    except AlreadyRunningError:
        try:
            same = await _input(orders, order_id) == order
        except RPCError as error:
            raise refused_of(error, order_id) from error
        if not same:
            raise
        return await orders.task(order_id)


async def _input(orders: WorkOrders, order_id: str) -> WorkOrderInput | None:
    """Return what a work order was started with; `None` where that is no input of ours."""
    handle = orders.client.get_workflow_handle(order_id)
    async for event in handle.fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        try:
            return WorkOrderInput.model_validate_json(payloads[0].data if payloads else b"null", extra="ignore")
        except ValidationError:
            return None
    return None
