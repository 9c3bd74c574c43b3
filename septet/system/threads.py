"""Run blocking work in pools of threads: a full pool delays only its own work, and a cancel waits for the work.

Work that waits for the network has one pool, and work that waits for the disk has another pool. Quick checks of
agents and files run in the event loop's own threads, which do no other work.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Final, ParamSpec, Self, TypeVar

from septet.system.processes import Halt

P = ParamSpec("P")
T = TypeVar("T")

LOOKS: Final = None
"""The value that means the event loop's own threads, for quick work."""

_LOOKS_PER_AGENT: Final = 2
_SPARE: Final = 64
"""The number of threads for work without agents: probes, ends of cancelled work orders, stray agents, HTTP API."""


@dataclass(frozen=True, slots=True)
class ThreadPools:
    """One pool of threads for the network, one for the disk, one for quick work; threads start when needed."""

    network: Executor
    """The pool for work that may wait for a remote or a forge, even if the work also uses the disk."""
    disk: Executor
    """The pool for local work of git and snapshots."""
    looks: ThreadPoolExecutor
    """The pool for quick work, which the event loop uses as its own pool."""

    @classmethod
    def sized(cls, agents: int, openings: int) -> Self:
        """Return pools for steps and for openings of workspaces; the arguments are how many run at a time."""
        return cls(
            ThreadPoolExecutor(agents + openings + _SPARE, "septet-network"),
            ThreadPoolExecutor(agents + openings + _SPARE, "septet-disk"),
            ThreadPoolExecutor(_LOOKS_PER_AGENT * agents + openings + _SPARE, "septet-looks"),
        )

    @contextmanager
    def open(self) -> Iterator[Self]:
        """Yield the pools; shut them down after the block, except `looks`: the event loop shuts down that pool."""
        try:
            yield self
        finally:
            for pool in (self.network, self.disk):
                pool.shutdown(wait=False)


class Beside:
    """Threads for background work; the owner of this object starts the work and ends it."""

    def __init__(self) -> None:
        """Begin without threads."""
        self._halt = Halt()
        self._threads: list[Thread] = []

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Run some work in a new thread; the work must not raise."""

        def run() -> None:
            with self._halt.over():
                work()

        thread = Thread(target=run, name=f"septet-{name}", daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()

    def end(self) -> None:
        """Halt all work, and wait for each thread to end, at most ten seconds for each."""
        self._halt.now()
        for thread in self._threads:
            thread.join(10.0)


async def shielded_thread(pool: Executor | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread and return its result; a cancel waits until the work has ended."""
    return await _shielded(pool, lambda _: None, work, *args, **kwargs)


async def stoppable_thread(
    pool: Executor | None, stop: Callable[[], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread and return its result; a cancel calls `stop` and waits for the work."""
    return await _shielded(pool, lambda _: stop(), work, *args, **kwargs)


async def undoable_thread(
    pool: Executor | None, undo: Callable[[T], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread and return its result; after a cancel, call `undo` with the result."""

    def undo_result(future: asyncio.Future[T]) -> None:
        if not future.cancelled() and future.exception() is None:
            undo(future.result())

    return await _shielded(pool, lambda running: running.add_done_callback(undo_result), work, *args, **kwargs)


async def _shielded(
    pool: Executor | None,
    on_cancel: Callable[[asyncio.Future[T]], object],
    work: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    call = partial(copy_context().run, work, *args, **kwargs)
    running = asyncio.get_running_loop().run_in_executor(pool, call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        on_cancel(running)
        while not running.done():
            with suppress(asyncio.CancelledError):  # another cancel
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # an exception that is not read would be logged as lost
        raise
