"""Read a file of a worktree, even while an agent works in it, but never a file outside."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def read_inside(root: Path, path: str, limit_bytes: int) -> bytes | None:
    """Return the first bytes of a plain file below `root`; `None` if there is no such file."""
    with open_inside(root, path) as file:
        try:
            return file.read(limit_bytes) if file is not None else None
        except OSError:
            return None


@contextmanager
def open_inside(root: Path, path: str) -> Iterator[BinaryIO | None]:
    """Open a plain file below `root` for the block; yield `None` if there is no such file.

    Each folder is opened from its parent, and a path through a symlink counts as missing.
    """
    with ExitStack() as stack:
        yield _open(stack, root, path)


def _open(stack: ExitStack, root: Path, path: str) -> BinaryIO | None:
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or PurePosixPath(path).is_absolute():
        return None
    try:
        at = _close_later(stack, os.open(root, _FOLDER))
        for name in parts[:-1]:
            at = _close_later(stack, os.open(name, _FOLDER, dir_fd=at))
        file = _close_later(stack, os.open(parts[-1], _FILE, dir_fd=at))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return stack.enter_context(open(file, "rb", closefd=False))
    except (OSError, ValueError):
        # ValueError is a name that no file can have.
        return None


def _close_later(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor
