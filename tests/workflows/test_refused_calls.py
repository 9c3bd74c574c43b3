"""Errors after a server refuses one call of several: the server goes away, or a work order ends between two calls."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from fakes.unreached import away
from temporalio.client import (
    CancelWorkflowInput,
    Client,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    Interceptor,
    OutboundInterceptor,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
)
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.work_orders import WorkOrders
from septet.contracts.order import WorkOrderInput
from septet.errors import RefusedTransitionError, ServerNotReachedError

ORDER = WorkOrderInput(repository="/app.git", title="Do it")


class _Calls(OutboundInterceptor):
    async def cancel_workflow(self, input: CancelWorkflowInput) -> None:  # noqa: A002 -- the SDK's name
        """Fail as a server does when the work order has ended."""
        del input
        raise RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")

    async def describe_workflow(self, input: DescribeWorkflowInput) -> WorkflowExecutionDescription:  # noqa: A002 -- the SDK's name
        """Describe a work order as completed if its id contains `completed`."""
        told = await super().describe_workflow(input)
        return replace(told, status=WorkflowExecutionStatus.COMPLETED) if "completed" in input.id else told

    def fetch_workflow_history_events(self, input: FetchWorkflowHistoryEventsInput) -> Any:  # noqa: A002 -- the SDK's name
        """Fail as a server that is away."""
        del input
        raise away()


class Between(Interceptor):
    """An interceptor that changes the answers between two calls of a client."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 -- the SDK's name
        """Return an interceptor that changes the answers."""
        return _Calls(next)


@pytest.fixture
def orders(client: Client) -> WorkOrders:
    config = client.config()
    config["interceptors"] = [Between()]
    return WorkOrders(Client(**config), "nobody-works-here")


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
