"""Paths that agents name: in one spelling, and inside the repository or not."""

from contextlib import suppress
from pathlib import Path, PurePosixPath


def normal_path(path: str) -> str:
    """Return a path in its one spelling: `./src//a.py` is `src/a.py`, and a folder has no `/` at its end."""
    return str(PurePosixPath(path.strip()))


def normal_path_in(worktree: Path, path: str) -> str:
    """Return a path in its one spelling, relative to the worktree's root where it is absolute inside of it."""
    pure = PurePosixPath(path.strip())
    for root in (worktree, worktree.resolve()):
        if pure.is_relative_to(root):
            return str(pure.relative_to(root))
    return str(pure)


def is_in(path: str, scope: str) -> bool:
    """Say whether a file is the scope itself or lies below it; both in their one spelling."""
    return PurePosixPath(path).is_relative_to(PurePosixPath(scope))


def why_outside(worktree: Path, path: str) -> str | None:
    """Return why a path is none of the repository's; `None` where it is one, whether it exists or not.

    Args:
        worktree: The worktree's root: a symlink that points outside it is seen.
        path: As an agent gave it.
    """
    pure = PurePosixPath(path.strip())
    if pure.is_absolute():
        return "is absolute"
    if ".." in pure.parts:
        return "has `..` in it"
    if any(part.lower() == ".git" for part in pure.parts):
        return "is git's own"
    root = worktree.resolve()
    try:
        real = (root / pure).resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            real.stat()
    except (OSError, RuntimeError, ValueError):
        # RuntimeError is a loop of symlinks before Python 3.13, ValueError a name that no file can have.
        return "is a name that no file can have"
    if not real.is_relative_to(root) or real.is_relative_to(root / ".git"):
        return "points outside the repository through a symlink"
    return None
