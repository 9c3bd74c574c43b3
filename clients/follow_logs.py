"""What the agents of a work order say and do, as it happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from clients.agent_logs import AgentLogs
from clients.operations import Operations
from septet.contracts.replies import LogEntry

_LOOK_SECONDS: Final = 0.5


async def follow_logs(operations: Operations, order_id: str, after: str = "") -> AsyncIterator[list[LogEntry]]:
    """Yield what is new at each look, also nothing, until the work order is closed and all is told.

    Args:
        operations: Where.
        order_id: The work order.
        after: The id of the last entry that is known; all are yielded where there is no such entry.
    """
    logs = AgentLogs(operations.state, order_id)
    closed = asyncio.create_task(_closed(operations, order_id))
    try:
        first, over = True, False
        while not over:
            over = closed.done()  # before the look: what is written until the end is told
            entries = await asyncio.to_thread(_look, logs)
            known = (
                next((number for number, entry in enumerate(entries, 1) if entry.id == after), 0) if first else 0
            )
            yield entries[known:]
            first = False
            await asyncio.wait([closed], timeout=_LOOK_SECONDS)
        await closed
    finally:
        closed.cancel()
        with suppress(asyncio.CancelledError):
            await closed


def _look(logs: AgentLogs) -> list[LogEntry]:
    return list(logs.new_entries())


async def _closed(operations: Operations, order_id: str) -> None:
    """Wait for the end of a work order: the end of a run that was reset is none."""
    while not (await operations.orders.wait(order_id)).is_closed:
        pass
