"""Run background work next to a worker, and end it together with the worker."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import structlog
from temporalio.service import RPCError

from septet.errors import SeptetError

_log = structlog.get_logger()


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run `work` in the background while the block runs, then cancel it and wait for its end.

    An error of the work is logged, and does not fail the block.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(_log_fault)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait((task,))


def repeating(
    look: Callable[[], Awaitable[object]], pause_seconds: float, event: str
) -> AbstractAsyncContextManager[None]:
    """Call `look` repeatedly in the background while the block runs; see `repeat`."""
    return beside(repeat(look, lambda: pause_seconds, event))


async def repeat(look: Callable[[], Awaitable[object]], pause_seconds: Callable[[], float], event: str) -> None:
    """Call `look` repeatedly until the caller cancels this; log the error of a call that fails.

    Args:
        event: The name of the log event of a failed call.
    """
    while True:
        await try_look(look, event)
        await asyncio.sleep(pause_seconds())


async def try_look(look: Callable[[], Awaitable[object]], event: str) -> None:
    """Call `look` once; log `event` if the call fails."""
    try:
        await look()
    except (OSError, SeptetError, RPCError) as error:
        _log.warning(event, error=str(error))
    except Exception as error:  # noqa: BLE001 -- a defect in one look ends none of the looks after it
        _log.error(event, exc_info=error)


def _log_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("work_beside_ended", exc_info=error)
