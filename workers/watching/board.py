"""The board of a queue: workers start it, and report to it that they serve."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from temporalio.client import Client

from septet.contracts.board import HostCapacity, board_id
from septet.settings import Settings
from workers.beside import beside, repeat
from workflows.board.board import Board

TELL_SECONDS: Final = 120.0
"""The seconds between a worker's reports that it serves."""
_SILENT: Final = 3
"""The intervals without a report after which a host no longer counts."""


@asynccontextmanager
async def serving_on_board(client: Client, settings: Settings, host_id: str) -> AsyncIterator[None]:
    """Report to the board that this host serves, now and every few minutes while the block runs."""
    tell = partial(tell_board, client, settings, host_id)
    async with beside(repeat(tell, lambda: TELL_SECONDS, "board_not_told")):
        yield


async def tell_board(client: Client, settings: Settings, host_id: str) -> None:
    """Report a host and its limits to the board; start a missing board.

    Raises:
        RPCError: The server refused.
    """
    await client.start_workflow(
        Board.run,
        id=board_id(settings.task_queue),
        task_queue=settings.task_queue,
        start_signal="serves",
        start_signal_args=[capacity_of(settings, host_id)],
        static_summary="Whose turn it is",
    )


def capacity_of(settings: Settings, host_id: str) -> HostCapacity:
    """Return a host's report to the board: its limits, and the seconds for which the report counts."""
    return HostCapacity(
        host=host_id,
        host_limit=0 if settings.drain else settings.host_limit,
        project_limit=settings.project_limit,
        seconds=_SILENT * TELL_SECONDS,
    )
