"""Blocking work in a thread, which a cancel does not tear: it is waited for, stopped, or undone."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def shielded_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread; a cancel waits for its end, so that it is never left half done."""
    return await _shielded(lambda _: None, work, *args, **kwargs)


async def stoppable_thread(
    stop: Callable[[], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread; a cancel calls `stop`, and waits for the work's end."""
    return await _shielded(lambda _: stop(), work, *args, **kwargs)


async def undoable_thread(
    undo: Callable[[T], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread; when a cancel comes meanwhile, undo what the work returns."""

    def undo_result(future: asyncio.Future[T]) -> None:
        if not future.cancelled() and future.exception() is None:
            undo(future.result())

    return await _shielded(lambda running: running.add_done_callback(undo_result), work, *args, **kwargs)


async def _shielded(
    on_cancel: Callable[[asyncio.Future[T]], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        on_cancel(running)
        await asyncio.wait([running])
        raise
