"""Delete old files that no work order needs: locks, results of base checks, and half-written files."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from septet.git.engine.place import LOCK_SUFFIX, find_record
from septet.git.snapshots.forget import remove_closed
from septet.janitor.terms import SweptKind, Terms, is_over
from septet.state import StateDir
from septet.system.durable import DRAFTS, lock_is_held, remove_lock

Refusing = Callable[[SweptKind, str], AbstractContextManager[None]]
"""A function that returns a context manager, which records an error of a deletion and suppresses the error."""


def sweep_leftovers(state: StateDir, terms: Terms, now: datetime, refusing: Refusing) -> None:
    """Delete leftover files whose retention time is over.

    Locks and results of checks are made again when needed. Half-written files come from killed processes.
    """
    for lock in sorted(state.workspaces.glob(f"*{LOCK_SUFFIX}")):
        order_id = lock.name.removesuffix(LOCK_SUFFIX)
        has_files = find_record(state, order_id) is not None or os.path.lexists(lock.with_name(order_id))
        if not has_files and _is_old(lock, terms.workspaces_days, now):
            with refusing("workspace", lock.name):
                remove_lock(lock)
    for name in folder_names(state.base_checks):
        folder = state.base_checks / name
        with refusing("runs", name):
            if _is_old(folder, terms.runs_days, now) and not lock_is_held(folder / "lock"):
                remove_closed(folder, state.trash)
    own = (state.root, state.held_turns, state.cost_notes, state.forge_pauses)
    folders = (*own, *state.logins.glob("*/"), *state.pipelines.glob("*/"))
    for draft in sorted(path for folder in folders for path in folder.glob(DRAFTS)):
        if _is_old(draft, terms.forgotten_days, now):
            draft.unlink(missing_ok=True)


def _is_old(path: Path, days: float, now: datetime) -> bool:
    return is_over(datetime.fromtimestamp(changed_at(path), UTC), days, now)


def folder_names(folder: Path) -> Iterator[str]:
    """Yield the names of the folders in a folder, sorted; nothing if the folder is missing."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        yield from sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def changed_at(path: Path) -> float:
    """Return the Unix time of a file's last change; 0 for a missing file."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0
