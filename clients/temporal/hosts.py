"""A person's word on hosts: which work orders go on elsewhere because one of them is dead."""

from datetime import timedelta
from typing import Final

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.index import quote_name
from clients.temporal.refusals import server_refusal
from septet.contracts.pull_request_names import watched_order
from septet.errors import NotFoundError
from workers.preflight import lacks_attribute
from workflows.search_attributes import HOST, STAGE

_RUNNING: Final = 'WorkflowType IN ("WorkOrder", "PullRequest") AND ExecutionStatus="Running"'
_MAY_WORK: Final = f'{STAGE.name} != "review"'
"""In review nobody has to be told: no agent works."""
_ANSWERED_WITHIN: Final = timedelta(seconds=20)


async def give_up(client: Client, host: str) -> list[str]:
    """Tell the work orders of a host that it is dead, and return the ids of those that continue elsewhere.

    A completed one is among them whose pull request an agent reworks there.

    Raises:
        NotFoundError: No running work order is on that host.
        ServerNotReachedError: The server refused.
    """
    try:
        rows = client.list_workflows(await _query(client, host))
        orders = [watched_order(row.id) async for row in rows if await _leave(client, row, host)]
    except RPCError as error:
        raise server_refusal(error) from error
    if not orders:
        remedy = "`septet list` names the work orders; `septet show` tells which host one of them waits for."
        raise NotFoundError(f"No running work order is on host {host}.", remedy=remedy)
    return sorted(orders)


async def _query(client: Client, host: str) -> str:
    """Return what finds all that may be on a host: on a server that tells of no workers none shows where it is."""
    if await lacks_attribute(client, HOST):
        return f"{_RUNNING} AND {_MAY_WORK}"
    return f"{_RUNNING} AND ({HOST.name} = {quote_name(host)} OR ({HOST.name} IS NULL AND {_MAY_WORK}))"


async def _leave(client: Client, row: WorkflowExecution, host: str) -> bool:
    """Tell a work order that a host is dead, and return whether that one has its workspace."""
    handle = client.get_workflow_handle(row.id, run_id=row.run_id)
    try:
        await handle.execute_update("host_gone", host, rpc_timeout=_ANSWERED_WITHIN)
    except (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
        return False  # it is on another host, or no worker lives that could tell
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False  # it has ended meanwhile
    return True
