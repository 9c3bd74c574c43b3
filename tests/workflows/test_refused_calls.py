"""Errors after a server refuses one call of several: the server goes away, or a work order ends between two calls."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from fakes.around import Call, around
from fakes.unreached import away
from temporalio.client import (
    CancelWorkflowInput,
    Client,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    WorkflowExecutionStatus,
)
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.errors import RefusedTransitionError, ServerNotReachedError

ORDER = WorkOrderInput(repository="/app.git", title="Do it")


@pytest.fixture
def orders(client: Client) -> WorkOrders:
    """Work orders of a server that goes away between two calls, or whose work order ends between them."""

    async def cancel(_really: Call, _workflow: CancelWorkflowInput) -> None:
        raise RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")

    async def describe(really: Call, workflow: DescribeWorkflowInput) -> Any:
        told = await really(workflow)
        return replace(told, status=WorkflowExecutionStatus.COMPLETED) if "completed" in workflow.id else told

    def fetch(_really: Call, _workflow: FetchWorkflowHistoryEventsInput) -> None:
        raise away()

    seen = around(client, cancel_workflow=cancel, describe_workflow=describe, fetch_workflow_history_events=fetch)
    return WorkOrders(seen, "nobody-works-here")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_cancel_that_meets_the_end_is_refused(orders: WorkOrders) -> None:
    """The cancel of a work order that ended after the first look is refused."""
    begun = await orders.put(ORDER, f"wo-{uuid4().hex[:8]}")
    with pytest.raises(RefusedTransitionError, match="has ended"):
        await orders.cancel_and_wait(begun.id)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_end_that_cannot_be_read_is_the_servers(orders: WorkOrders) -> None:
    """If a completed work order's history cannot be read, the error is of the server, not `NotFoundError`."""
    begun = await orders.put(ORDER, f"wo-completed-{uuid4().hex[:8]}")
    with pytest.raises(ServerNotReachedError, match="away"):
        await orders.get(begun.id)
