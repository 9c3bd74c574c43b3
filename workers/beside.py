"""Work that goes on beside a worker, and ends with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import structlog
from temporalio.service import RPCError

from septet.errors import SeptetError

_log = structlog.get_logger()


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Let `work` go on for as long as the block lasts; at its end it is cancelled and waited for."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def repeat(look: Callable[[], Awaitable[object]], pause_seconds: Callable[[], float], event: str) -> None:
    """Look again and again, without end; a disk or a server that fails now is asked again the next time.

    Args:
        look: What is done each time.
        pause_seconds: Returns the pause after each look.
        event: The name of the log entry where a look fails.
    """
    while True:
        try:
            await look()
        except (OSError, SeptetError, RPCError) as error:
            _log.warning(event, error=str(error))
        await asyncio.sleep(pause_seconds())
