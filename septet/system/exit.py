"""The end of a process that is done."""

import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End this process without Python's finalization, in which a thread of Temporal's SDK may abort it.

    All work is over by now, and what was printed is written out. The abort is
    https://github.com/temporalio/sdk-python/issues/300.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
