"""Who takes a closed work order up again: one at a time, or each would reset what the other has just begun."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients._refused import refused
from septet.errors import RefusedTransitionError

_NOBODY: Final = "septet-claims"
"""A queue that no worker serves: the claim is a name that the server gives to one at a time, and does nothing."""
_AT_MOST: Final = timedelta(minutes=2)
"""Of one whose client was killed; others are refused as long."""


@asynccontextmanager
async def claimed(client: Client, order_id: str) -> AsyncIterator[None]:
    """Be the only one who takes up a work order, for as long as the block lasts.

    The server would carry out each of two resets, also with one request id (as of release 1.32).

    Raises:
        RefusedTransitionError: Another one is about to.
        ServerNotReachedError: The server refused.
    """
    name = f"{order_id}/again"
    try:
        claim = await client.start_workflow("Claim", id=name, task_queue=_NOBODY, execution_timeout=_AT_MOST)
    except WorkflowAlreadyStartedError as error:
        message = f"Somebody takes {order_id} up again at this moment."
        raise RefusedTransitionError(message, remedy=f"Look at it with `septet show {order_id}`.") from error
    except RPCError as error:
        raise refused(error) from error
    try:
        yield
    finally:
        with suppress(RPCError):  # it ends by itself
            run = WorkflowExecution(workflow_id=name, run_id=claim.result_run_id or "")
            await client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=run)
            )
