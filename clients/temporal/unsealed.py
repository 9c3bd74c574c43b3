"""Workflows that began before their input was sealed: workers that refuse unsealed input leave them standing."""

import asyncio
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from septet.contracts.seal import is_sealed

_AT_A_TIME: Final = 20
_OPEN: Final = 'ExecutionStatus="Running"'


async def unsealed_workflows(client: Client) -> dict[str, str]:
    """Return the open workflows of a namespace that began unsealed: their types by their ids.

    Raises:
        RPCError: The server refused.
    """
    places = asyncio.Semaphore(_AT_A_TIME)
    rows = [row async for row in client.list_workflows(_OPEN)]

    async def look(workflow_id: str, run_id: str) -> bool:
        async with places:
            return await began_unsealed(client, workflow_id, run_id)

    looks = await asyncio.gather(*(look(row.id, row.run_id) for row in rows))
    return {row.id: row.workflow_type for row, is_unsealed in zip(rows, looks, strict=True) if is_unsealed}


async def began_unsealed(client: Client, workflow_id: str, run_id: str) -> bool:
    """Say whether a run was started with input that is not sealed; one that is not there any more was not.

    Raises:
        RPCError: The server refused.
    """
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=ExecutionName(workflow_id=workflow_id, run_id=run_id),
        maximum_page_size=1,
    )
    try:
        answer = await client.workflow_service.get_workflow_execution_history(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    started = (event.workflow_execution_started_event_attributes for event in answer.history.events[:1])
    return any(not is_sealed(payload.metadata) for each in started for payload in each.input.payloads)
