"""The end of a process that is done."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

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
