"""From how many heaps the threads of this process allocate."""

from contextlib import suppress
from typing import Final

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8
"""Which setting it is, by glibc's `malloc.h`."""


def share_heaps() -> None:
    """Have all threads allocate from two heaps; to be called before the first of them begins.

    glibc gives each thread a heap of its own, up to eight for each processor, and what a thread once used there
    stays with it: after some minutes, half of what a worker held in them was in use by nothing. Other C libraries
    have no such heaps, and nothing happens.
    """
    import ctypes

    with suppress(AttributeError):  # no glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, HEAPS)
