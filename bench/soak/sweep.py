"""What time removes, in minutes instead of weeks: the janitor's pass, and the server's retention."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from pydantic import JsonValue
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from clients.temporal.budgets import whole_scope
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.contracts.budget import account_id
from septet.contracts.decisions import MoveCall
from septet.contracts.transitions import Target
from septet.errors import SeptetError

KEEP = timedelta(minutes=4)
"""What is closed is kept so long: by the janitor, and by the server. In use it is two days to three months."""
MOST_EVENTS: Final = 250
"""After so many events a workflow that goes on for ever begins anew; in use after 4,096, which takes days."""
SERVER_CONFIG: Final[Mapping[str, JsonValue]] = {
    **dict.fromkeys(("history.cacheTTL", "history.eventsCacheTTL"), f"{KEEP.total_seconds():.0f}s"),
    "limit.historyCount.suggestContinueAsNew": MOST_EVENTS,
}
"""What the server is told beside; in use it keeps for an hour in memory what nobody asks for."""
CACHED: Final = 100
"""Workflows that a worker keeps in memory: it has so many after some minutes. Nobody tells it that an account was
terminated, and it keeps that until others need its place."""

_QUEUE: Final = "septet"
_OF_THE_SERVER: Final = "TemporalNamespaceDivision IS NOT NULL"
"""A list has those runs only where it is asked for them."""


def short_terms() -> dict[str, str]:
    """Return the settings by which what nobody needs is soon removed, from the disk and from a worker's memory."""
    days = f"{KEEP / timedelta(days=1):.5f}"
    kept = ("WORKSPACES", "RUNS", "SNAPSHOTS", "FORGOTTEN")
    return {f"SEPTET_KEEP_{name}_DAYS": days for name in kept} | {"SEPTET_CACHED_WORKFLOWS": str(CACHED)}


async def shorten_retention(client: Client) -> None:
    """Have the server keep what closes for an hour, the least it allows: until then it notes when to delete it."""
    await client.workflow_service.update_namespace(
        UpdateNamespaceRequest(
            namespace=client.namespace,
            config=NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=3600)),
        )
    )


async def sweep(client: Client) -> int:
    """Have the janitors pass, delete the histories that are past their time, and return how many those were."""
    async for schedule in await client.list_schedules():
        if schedule.id.startswith("septet-janitor-"):
            with suppress(RPCError):  # its worker was killed while it was made
                await client.get_schedule_handle(schedule.id).trigger()
    return await _delete_histories(client, datetime.now(UTC) - KEEP)


async def end_reviews(client: Client) -> None:
    """Move what waits for its review to done: else its pull requests would be looked at for weeks."""
    decisions = OrderDecisions(WorkOrders(client))
    async for row in client.list_workflows('WorkflowType="PullRequest" AND ExecutionStatus="Running"'):
        with suppress(RPCError, SeptetError):  # its work order is not closed yet, or the worker was killed
            await decisions.move(row.id.removesuffix("/pr"), MoveCall(to=Target.DONE))


async def end_accounts(client: Client, orders: Iterable[str]) -> None:
    """End the accounts of the budgets of work orders, which would end 45 days after the last word on them."""
    for order in orders:
        with suppress(RPCError):  # it has ended
            await client.get_workflow_handle(account_id(_QUEUE, whole_scope(order))).terminate()


async def _delete_histories(client: Client, before: datetime) -> int:
    """Delete what closed before a moment, as retention does: also what the server runs for its workers."""
    closed = f"ExecutionStatus != 'Running' AND CloseTime < '{before.isoformat()}'"
    found = [
        (each.id, each.run_id)
        for query in (closed, f"{closed} AND {_OF_THE_SERVER}")
        async for each in client.list_workflows(query)
    ]
    await _delete(client, found)
    return len(found)


async def _delete(client: Client, runs: Iterable[tuple[str, str]]) -> None:
    for workflow_id, run_id in runs:
        with suppress(RPCError):  # visibility lags: it was deleted a moment ago
            await client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(
                    namespace=client.namespace,
                    workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
                )
            )
