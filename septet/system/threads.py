"""Blocking work in threads: pools that hold nothing up but their own, and cancels that tear nothing.

What waits for others, over the network, has a pool of its own, and so has what the disk holds up. Quick looks at
agents and files run in the event loop's own threads, so those are left to them.
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
"""The event loop's own threads, for what takes moments."""

_LOOKS_PER_AGENT: Final = 2
_END_SECONDS: Final = 10.0
_SPARE: Final = 64
"""For what no agent asks for: probes and ends of cancelled work orders, strays, the HTTP API."""


@dataclass(frozen=True, slots=True)
class ThreadPools:
    """A pool for each thing that blocking work may wait for; a thread is started when it is needed."""

    network: Executor
    """What may wait for a remote or a forge, also where it works on the disk before and after."""
    disk: Executor
    """What git and snapshots do here."""
    looks: ThreadPoolExecutor
    """What takes moments, for the event loop to have as its own."""

    @classmethod
    def sized(cls, agents: int, openings: int) -> Self:
        """Return pools in which nobody waits for a thread.

        Args:
            agents: How many steps are taken at a time.
            openings: How many workspaces are opened at a time, and whatever else waits with them.
        """
        return cls(
            ThreadPoolExecutor(agents + openings + _SPARE, "septet-network"),
            ThreadPoolExecutor(agents + openings + _SPARE, "septet-disk"),
            ThreadPoolExecutor(_LOOKS_PER_AGENT * agents + openings + _SPARE, "septet-looks"),
        )

    @contextmanager
    def open(self) -> Iterator[Self]:
        """Have the slow pools for as long as the block lasts; the event loop ends its own threads itself."""
        try:
            yield self
        finally:
            for pool in (self.network, self.disk):
                pool.shutdown(wait=False)


class Beside:
    """Work in threads of its own for which nobody waits; it ends with what has it done."""

    def __init__(self) -> None:
        """Begin without a waiting read."""
        self._halt = Halt()
        self._threads: list[Thread] = []

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Do some work, which raises nothing."""

        def run() -> None:
            with self._halt.over():
                work()

        thread = Thread(target=run, name=f"septet-{name}", daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()

    def end(self) -> None:
        """Halt what is being done, and wait for its end, for some seconds at most."""
        self._halt.now()
        for thread in self._threads:
            thread.join(_END_SECONDS)


async def shielded_thread(pool: Executor | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread; cancels wait for its end, so that it is never left half done."""
    return await _shielded(pool, lambda _: None, work, *args, **kwargs)


async def stoppable_thread(
    pool: Executor | None, stop: Callable[[], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread; a cancel calls `stop`, and waits for the work's end."""
    return await _shielded(pool, lambda _: stop(), work, *args, **kwargs)


async def undoable_thread(
    pool: Executor | None, undo: Callable[[T], object], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread; when a cancel comes meanwhile, undo what the work returns."""

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
            with suppress(asyncio.CancelledError):  # another one
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody else asks for it, and it would be logged as lost
        raise
