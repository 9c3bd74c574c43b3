"""Report a dead host to the workflows that use it, so that they continue on another host."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.index import quote_name
from clients.executions.messages import server_refusals
from septet.contracts.names import watched_order
from septet.errors import NotFoundError, ServerNotReachedError
from septet.system.text import name_some
from workers.server.preflight import lacks_attribute
from workflows.wire.search_attributes import HOST, STAGE

_RUNNING: Final = 'WorkflowType IN ("WorkOrder", "PullRequest") AND ExecutionStatus="Running"'
_MAY_WORK: Final = f'{STAGE.name} != "review"'
"""The condition that omits work orders in review: no agent works on them, so they need no report."""
_ANSWERED_WITHIN: Final = timedelta(seconds=20)
_AT_ONCE: Final = 32
"""The most reports at once. If none of the first 32 workflows answers, no worker runs, and reporting stops."""


@dataclass(frozen=True, slots=True)
class AbandonedHost:
    """The sorted ids of the workflows that use, or may use, a dead host."""

    work_orders: list[str]
    """The work orders with a workspace on the host, and completed work orders in rework on the host."""
    pipelines: list[str]
    """The pipelines with lanes on the host. A later work order opens such a lane on another host."""
    unanswered: list[str]
    """The work orders and pipelines that may be on the host, but for which no worker answered."""


async def give_up(client: Client, host: str, within: timedelta = _ANSWERED_WITHIN) -> AbandonedHost:
    """Report a dead host to all workflows on it; wait up to `within` for each answer; return the workflows' ids.

    Raises:
        NotFoundError: No running work order is on that host, and no lane of a pipeline.
        ServerNotReachedError: The server does not answer, or refuses; or no worker answers.
    """
    word = _Word(client, host, within)
    with server_refusals():
        pipelines = await word.tell('WorkflowType="Pipeline" AND ExecutionStatus="Running"')
        orders_query = f"{_RUNNING} AND {_MAY_WORK}"
        if not await lacks_attribute(client, HOST):
            is_there = f"{HOST.name} = {quote_name(host)}"
            orders_query = f"{_RUNNING} AND ({is_there} OR ({HOST.name} IS NULL AND {_MAY_WORK}))"
        orders = await word.tell(orders_query)
    unanswered = sorted(word.unanswered)
    if orders or pipelines:
        return AbandonedHost([watched_order(each) for each in orders], pipelines, unanswered)
    if unanswered:
        names, waited = name_some(unanswered, 5), f"{within.total_seconds():.0f} s"
        message = f"No worker answered within {waited} for {names}, which may be on host {host}."
        raise ServerNotReachedError(message, remedy="Start a worker: `septet up`. Then repeat the command.")
    remedy = "`septet list` names the work orders; `septet show` tells which host one of them waits for."
    raise NotFoundError(f"No running work order is on host {host}.", remedy=remedy)


@dataclass
class _Word:
    """Reports one dead host to all workflows that may use the host."""

    client: Client
    host: str
    within: timedelta
    unanswered: list[str] = field(default_factory=list)
    _answers: int = 0

    async def tell(self, query: str) -> list[str]:
        """Report to the workflows that a query finds; return the sorted ids of the workflows that use the host."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def ask(row: WorkflowExecution) -> bool:
            async with places:
                return await self._is_there(row)

        rows = [row async for row in self.client.list_workflows(query)]
        answers = await asyncio.gather(*map(ask, rows))
        return sorted(row.id for row, is_there in zip(rows, answers, strict=True) if is_there)

    async def _is_there(self, row: WorkflowExecution) -> bool:
        """Report to a workflow that the host is dead, and return whether the workflow uses the host."""
        if not self._answers and len(self.unanswered) >= _AT_ONCE:
            self.unanswered.append(row.id)
            return False
        handle = self.client.get_workflow_handle(row.id, run_id=row.run_id)
        try:
            await handle.execute_update("host_gone", self.host, rpc_timeout=self.within)
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            self.unanswered.append(row.id)
            return False
        except WorkflowUpdateFailedError:
            self._answers += 1
            return False  # it is on another host
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False  # it has ended meanwhile
        self._answers += 1
        return True
