"""Settings of a Septet program for its own process: memory, imports, the log, and the end of the process."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8
"""The number of the setting in glibc's `malloc.h`."""
_last_works: Final[list[Callable[[], object]]] = []


def before_end(work: Callable[[], object]) -> None:
    """Register `work` for `end_process` to call, such as sending the last data; errors of `work` are ignored."""
    _last_works.append(work)


def end_process(code: int) -> NoReturn:
    """End this process without Python's finalization; first do the work that `before_end` has registered.

    The caller must have ended all other work. In finalization, a thread of Temporal's SDK may abort the process:
    see https://github.com/temporalio/sdk-python/issues/300.
    """
    for work in _last_works:
        with suppress(Exception):
            work()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # a stream that was closed at the start is `None`
            stream.flush()
    os._exit(code)


def share_heaps() -> None:
    """Make all threads allocate memory from two heaps; call this function before the first thread starts.

    glibc gives each thread a separate heap, which keeps memory that the thread no longer uses. Other C libraries
    ignore the call.
    """
    with suppress(AttributeError):  # no glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, HEAPS)


@contextmanager
def quick_imports() -> Iterator[None]:
    """Switch garbage collection off while the block imports modules, because nearly all objects stay in use."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def own_log() -> "FilteringBoundLogger":
    """Return the log of this process; a CLI command's log drops all events, to keep the output clean."""
    import structlog  # a command does not wait for this import

    silent = structlog.ReturnLogger()
    log: FilteringBoundLogger = (
        structlog.get_logger() if structlog.is_configured() else structlog.wrap_logger(silent)
    )
    return log
