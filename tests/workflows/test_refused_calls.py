"""What is said where a server refuses one call of several: it goes away, or a work order meets its end between two."""

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
    ListWorkflowsInput,
    OutboundInterceptor,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
)
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.hosts import give_up
from clients.temporal.resets import reset, reset_point
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import PreviousRun
from septet.contracts.names import Stage
from septet.contracts.order import WorkOrderInput
from septet.errors import RefusedTransitionError, ServerNotReachedError

ORDER = WorkOrderInput(repository="/app.git", title="Do it")


class _Calls(OutboundInterceptor):
    async def cancel_workflow(self, input: CancelWorkflowInput) -> None:  # noqa: A002 -- the name of the one above
        """Say what a server says where the work order has met its end."""
        del input
        raise RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")

    async def describe_workflow(self, input: DescribeWorkflowInput) -> WorkflowExecutionDescription:  # noqa: A002 -- the name of the one above
        """Tell of a work order that is called completed that it is."""
        told = await super().describe_workflow(input)
        return replace(told, status=WorkflowExecutionStatus.COMPLETED) if "completed" in input.id else told

    def list_workflows(self, input: ListWorkflowsInput) -> Any:  # noqa: A002 -- the name of the one above
        """Be away."""
        del input
        raise away()

    def fetch_workflow_history_events(self, input: FetchWorkflowHistoryEventsInput) -> Any:  # noqa: A002 -- the name of the one above
        """Be away."""
        del input
        raise away()


class Between(Interceptor):
    """Comes between two calls of a client."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 -- the name of the one above
        """Return the one that does."""
        return _Calls(next)


@pytest.fixture
def orders(client: Client) -> WorkOrders:
    config = client.config()
    config["interceptors"] = [Between()]
    return WorkOrders(Client(**config), "nobody-works-here")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_cancel_that_meets_the_end_is_refused(orders: WorkOrders) -> None:
    """A work order that was ended after it was looked at cannot be cancelled."""
    begun = await orders.put(ORDER, f"wo-{uuid4().hex[:8]}")
    with pytest.raises(RefusedTransitionError, match="has ended"):
        await orders.cancel_and_wait(begun.id)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_end_that_cannot_be_read_is_the_servers(orders: WorkOrders) -> None:
    """A completed work order whose history is not told is no work order that there is not."""
    begun = await orders.put(ORDER, f"wo-completed-{uuid4().hex[:8]}")
    with pytest.raises(ServerNotReachedError, match="away"):
        await orders.get(begun.id)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_key_whose_work_order_cannot_be_read_is_the_servers(orders: WorkOrders) -> None:
    """Whether the input is the same is not known: a repeat is neither the same nor another one."""
    begun = await orders.put(ORDER, f"wo-{uuid4().hex[:8]}")
    with pytest.raises(ServerNotReachedError, match="away"):
        await orders.run(ORDER, begun.id, key="key")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_run_that_is_not_there_is_not_reset(client: Client) -> None:
    """A run that the server does not have is refused in words of ours."""
    run = client.get_workflow_handle("wo-none", run_id=str(uuid4()))
    with pytest.raises(RefusedTransitionError, match="wo-none"):
        await reset(client, run, 4, "resumed", PreviousRun(came_from=Stage.REVIEW))


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_asked_of_a_server_that_is_away_is_said_so(orders: WorkOrders) -> None:
    """Looking for the step to go back to, and a word on a host, end in an error of ours."""
    begun = await orders.put(ORDER, f"wo-{uuid4().hex[:8]}")
    with pytest.raises(ServerNotReachedError, match="away"):
        await reset_point(orders.client.get_workflow_handle(begun.id), begun, None)
    with pytest.raises(ServerNotReachedError, match="away"):
        await give_up(orders.client, "host-1")
