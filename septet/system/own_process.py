"""What a program of Septet sets for its own process: its heaps, its imports at the start, and its end."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8
"""Which setting it is, by glibc's `malloc.h`."""
_last_works: Final[list[Callable[[], object]]] = []


def before_end(work: Callable[[], object]) -> None:
    """Have something done before this process ends, such as sending what is still held; errors are passed over."""
    _last_works.append(work)


def end_process(code: int) -> NoReturn:
    """End this process without Python's finalization, in which a thread of Temporal's SDK may abort it.

    All work is over by now, and what was printed is written out. The abort is
    https://github.com/temporalio/sdk-python/issues/300.
    """
    for work in _last_works:
        with suppress(Exception):
            work()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # a stream that was closed at the start is none
            stream.flush()
    os._exit(code)


def share_heaps() -> None:
    """Have all threads allocate from two heaps; to be called before the first of them begins.

    glibc gives each thread a heap of its own, up to eight for each processor, and what a thread once used there
    stays with it: after some minutes, half of what a worker held in them was in use by nothing. Other C libraries
    have no such heaps, and nothing happens.
    """
    with suppress(AttributeError):  # no glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, HEAPS)


@contextmanager
def quick_imports() -> Iterator[None]:
    """Look for no garbage while the block imports: nearly all that modules make stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
