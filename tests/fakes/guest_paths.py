"""The paths that tests' agents see beside a guest's own world: the test's folder, this Python and the project."""

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_CODE = tuple(dict.fromkeys((PROJECT, Path(sys.prefix), Path(sys.base_prefix))))


def guest_paths(*writable: Path) -> tuple[str, ...]:
    """Return the entries of `SEPTET_GUEST_PATHS`; tests' agents write their journals beside their worktree."""
    return (*map(str, _CODE), *(f"{path}:rw" for path in writable))


def guest_paths_variable(*writable: Path) -> dict[str, str]:
    return {"SEPTET_GUEST_PATHS": ",".join(guest_paths(*writable))}
