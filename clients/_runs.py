"""The runs that the server's index has of a workflow: one that a reset took up again stays there as it closed."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowExecution

from septet.contracts.names import ORDER_ID
from workflows.search_attributes import TAKEN_UP_AGAIN

_NAME: Final = re.compile(f"{ORDER_ID.pattern}(/pr)?")
_NAMES_AT_ONCE: Final = 500
_OPEN: Final = datetime.max.replace(tzinfo=UTC)


async def taken_up_again(client: Client, query: str) -> dict[str, WorkflowExecution]:
    """Return the last runs of the work orders that a reset took up again, by name.

    Args:
        client: Where.
        query: A condition more, with its `AND`; empty for none.

    Raises:
        RPCError: The server refused.
    """
    marked = f'WorkflowType="WorkOrder" AND TemporalChangeVersion="{TAKEN_UP_AGAIN}"{query}'
    return latest([run async for run in client.list_workflows(marked)])


async def count_of(client: Client, names: Iterable[str], query: str) -> int:
    """Return how many runs of some workflows a query finds.

    Raises:
        RPCError: The server refused.
    """
    counts = (client.count_workflows(f"{part}{query}") for part in _named(names))
    return sum(found.count for found in await asyncio.gather(*counts))


async def runs_of(client: Client, names: Iterable[str]) -> list[WorkflowExecution]:
    """Return the runs of some workflows; of names that are not ours, none.

    Raises:
        RPCError: The server refused.
    """

    async def found(part: str) -> list[WorkflowExecution]:
        return [run async for run in client.list_workflows(part)]

    return [run for runs in await asyncio.gather(*map(found, _named(names))) for run in runs]


def latest(runs: Iterable[WorkflowExecution]) -> dict[str, WorkflowExecution]:
    """Return by name the run that none came after."""
    last: dict[str, WorkflowExecution] = {}
    for run in runs:
        if run.id not in last or _closed(run) > _closed(last[run.id]):
            last[run.id] = run
    return last


def _closed(run: WorkflowExecution) -> datetime:
    return run.close_time or _OPEN


def _named(names: Iterable[str]) -> Iterator[str]:
    ours = sorted({name for name in names if _NAME.fullmatch(name)})
    for at in range(0, len(ours), _NAMES_AT_ONCE):
        quoted = ", ".join(f'"{name}"' for name in ours[at : at + _NAMES_AT_ONCE])
        yield f"WorkflowId IN ({quoted})"
