"""The runs that the server's index has of a workflow: one that a reset took up again stays there as it closed."""

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution

from septet.contracts.names import ORDER_ID
from workflows.search_attributes import TAKEN_UP_AGAIN

_NAME: Final = re.compile(f"{ORDER_ID.pattern}(/pr)?")
_NAMES_AT_ONCE: Final = 500
_CLOSED: Final = ' AND ExecutionStatus!="Running"'
_OPEN: Final = datetime.max.replace(tzinfo=UTC)


async def superseded_orders(client: Client) -> list[WorkflowExecution]:
    """Return the closed runs of work orders that a reset took up again.

    Raises:
        RPCError: The server refused.
    """
    query = f'WorkflowType="WorkOrder" AND TemporalChangeVersion="{TAKEN_UP_AGAIN}"'
    taken_up = [run async for run in client.list_workflows(query)]
    closed = await runs_of(client, (run.id for run in taken_up), _CLOSED)
    last = latest((*taken_up, *closed))
    return [run for run in closed if run.run_id != last[run.id].run_id]


async def runs_of(client: Client, names: Iterable[str], query: str = "") -> list[WorkflowExecution]:
    """Return the runs of some workflows, or those that a query finds among them; of names that are not ours, none.

    Raises:
        RPCError: The server refused.
    """
    ours = sorted({name for name in names if _NAME.fullmatch(name)})
    parts = (ours[at : at + _NAMES_AT_ONCE] for at in range(0, len(ours), _NAMES_AT_ONCE))

    async def found(part: list[str]) -> list[WorkflowExecution]:
        quoted = ", ".join(f'"{name}"' for name in part)
        return [run async for run in client.list_workflows(f"WorkflowId IN ({quoted}){query}")]

    return [run for runs in await asyncio.gather(*map(found, parts)) for run in runs]


def latest(runs: Iterable[WorkflowExecution]) -> dict[str, WorkflowExecution]:
    """Return by name the run that none came after."""
    last: dict[str, WorkflowExecution] = {}
    for run in runs:
        if run.id not in last or _closed(run) > _closed(last[run.id]):
            last[run.id] = run
    return last


def _closed(run: WorkflowExecution) -> datetime:
    return run.close_time or _OPEN
