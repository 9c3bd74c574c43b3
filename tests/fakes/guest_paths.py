"""What agents of tests see beside a guest's own world: the test's own folder, this Python and the project."""

import sys
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_CODE = tuple(dict.fromkeys((PROJECT, Path(sys.prefix), Path(sys.base_prefix))))


def guest_paths(*writable: Path, readable: Iterable[Path] = _CODE) -> tuple[str, ...]:
    """Return the entries of `SEPTET_GUEST_PATHS`: agents of tests note what they do beside their worktree."""
    return (*map(str, readable), *(f"{path}:rw" for path in writable))


def guest_paths_variable(*writable: Path) -> dict[str, str]:
    """Return the variable, for a worker that is a program of its own."""
    return {"SEPTET_GUEST_PATHS": ",".join(guest_paths(*writable))}
