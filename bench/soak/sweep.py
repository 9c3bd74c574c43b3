"""The removals by time, in minutes instead of weeks: the janitor's pass, and the server's retention."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from pydantic import JsonValue
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from clients.temporal.budgets import whole_scope
from clients.temporal.decisions import OrderDecisions
from clients.temporal.work_orders import WorkOrders
from septet.budgets.account import account_id
from septet.contracts.decisions import MoveCall, Target
from septet.errors import SeptetError

KEEP: Final = timedelta(minutes=4)
"""The time for which janitor and server keep closed work. In use it is two days to three months."""
MOST_EVENTS: Final = 250
"""The events after which an endless workflow begins a new run; in use 4,096, which takes days."""
SERVER_CONFIG: Final[Mapping[str, JsonValue]] = {
    **dict.fromkeys(
        (
            "history.cacheTTL", "history.eventsCacheTTL", "matching.workerRegistryEntryTTL",
            "system.namespaceMinRetentionLocal",
        ),
        f"{KEEP.total_seconds():.0f}s",
    ),
    **dict.fromkeys(
        ("history.retentionTimerJitterDuration", "matching.workerRegistryEvictionInterval",
         "matching.workerRegistryMinEvictAge"),
        "60s",
    ),
    "limit.historyCount.suggestContinueAsNew": MOST_EVENTS,
}  # fmt: skip
"""More settings of the server. By default it keeps closed workflows for at least a day, the records of a stopped
worker for a day, and unused entries in memory for an hour."""
CACHED: Final = 100
"""The workflows that a worker keeps in memory, a number it reaches after some minutes. A worker does not learn
that an account was terminated, and keeps it until another workflow needs the place."""

_QUEUE: Final = "septet"


def short_terms() -> dict[str, str]:
    """Return the settings that soon remove unused data from the disk and from a worker's memory."""
    days = f"{KEEP / timedelta(days=1):.5f}"
    kept = ("WORKSPACES", "RUNS", "SNAPSHOTS", "FORGOTTEN")
    return {f"SEPTET_KEEP_{name}_DAYS": days for name in kept} | {"SEPTET_CACHED_WORKFLOWS": str(CACHED)}


async def shorten_retention(client: Client) -> None:
    """Let the server delete workflows that closed some minutes ago."""
    await client.workflow_service.update_namespace(
        UpdateNamespaceRequest(
            namespace=client.namespace,
            config=NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=int(KEEP.total_seconds()))),
        )
    )


async def sweep(client: Client) -> None:
    """Trigger the janitors' passes."""
    async for schedule in await client.list_schedules():
        if schedule.id.startswith("septet-janitor-"):
            with suppress(RPCError):  # its worker was killed while it was made
                await client.get_schedule_handle(schedule.id).trigger()


async def end_reviews(client: Client) -> None:
    """Move work orders in review to done: otherwise their pull requests would be polled for weeks."""
    decisions = OrderDecisions(WorkOrders(client))
    async for row in client.list_workflows('WorkflowType="PullRequest" AND ExecutionStatus="Running"'):
        with suppress(RPCError, SeptetError):  # its work order is not closed yet, or the worker was killed
            await decisions.move(row.id.removesuffix("/pr"), MoveCall(to=Target.DONE))


async def end_accounts(client: Client, orders: Iterable[str]) -> None:
    """Terminate the accounts of work orders, which would otherwise end an hour after their last report."""
    for order in orders:
        with suppress(RPCError):  # the account has ended
            await client.get_workflow_handle(account_id(_QUEUE, whole_scope(order))).terminate()
