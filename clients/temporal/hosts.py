"""A person's word on hosts: which work orders go on elsewhere because one of them is dead."""

from dataclasses import dataclass
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

_PIPELINES: Final = 'WorkflowType="Pipeline" AND ExecutionStatus="Running"'
_RUNNING: Final = 'WorkflowType IN ("WorkOrder", "PullRequest") AND ExecutionStatus="Running"'
_MAY_WORK: Final = f'{STAGE.name} != "review"'
"""In review nobody has to be told: no agent works."""
_ANSWERED_WITHIN: Final = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class AbandonedHost:
    """Who was told that a host is dead: ids, sorted."""

    work_orders: list[str]
    """Those whose workspace it has, and completed ones whose pull request an agent reworks there."""
    pipelines: list[str]
    """Those with lanes there: the work orders that enter them later open them elsewhere."""


async def give_up(client: Client, host: str) -> AbandonedHost:
    """Tell all that is on a host that it is dead, and return who that was.

    Raises:
        NotFoundError: No running work order is on that host, and no lane of a pipeline.
        ServerNotReachedError: The server refused.
    """
    try:
        pipelines = await _tell(client, _PIPELINES, host)
        orders = await _tell(client, await _query(client, host), host)
    except RPCError as error:
        raise server_refusal(error) from error
    if not orders and not pipelines:
        remedy = "`septet list` names the work orders; `septet show` tells which host one of them waits for."
        raise NotFoundError(f"No running work order is on host {host}.", remedy=remedy)
    return AbandonedHost([watched_order(each) for each in orders], pipelines)


async def _tell(client: Client, query: str, host: str) -> list[str]:
    """Tell what a query finds, and return the ids of those that are on the host."""
    return sorted([row.id async for row in client.list_workflows(query) if await _leave(client, row, host)])


async def _query(client: Client, host: str) -> str:
    """Return what finds all that may be on a host: on a server that tells of no workers none shows where it is."""
    if await lacks_attribute(client, HOST):
        return f"{_RUNNING} AND {_MAY_WORK}"
    return f"{_RUNNING} AND ({HOST.name} = {quote_name(host)} OR ({HOST.name} IS NULL AND {_MAY_WORK}))"


async def _leave(client: Client, row: WorkflowExecution, host: str) -> bool:
    """Tell a workflow that a host is dead, and return whether it has something there."""
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
