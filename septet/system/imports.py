"""Imports of many modules at once, as a program begins."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Look for no garbage while the block imports: nearly all that modules make stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
