"""Folders so deep that no path reaches them: each is opened from its parent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def deep_folder(root: Path, name: str, depth: int) -> Iterator[int]:
    """Yield the descriptor of the deepest folder, and create missing folders."""
    folder = os.open(root, os.O_RDONLY)
    try:
        for _ in range(depth):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            below = os.open(name, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)
