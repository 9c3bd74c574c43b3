"""The file of a plan: check its path, and restore a snapshot together with it."""

import hashlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from septet.errors import EvidenceError, WorkspaceError
from septet.git.engine.objects import read_blobs
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import return_to
from septet.git.vault.facts import FILE, FOLDER, PROGRAM, Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read
from septet.git.vault.survey import above
from septet.git.vault.vault import find, first_and_last, vault_at


def plan_file(place: Place, path: str) -> str:
    """Return the plan's path relative to the worktree's root; raise if there is no such file with content.

    Raises:
        EvidenceError: The file is missing, empty, no plain file, or outside the worktree, even through a symlink.
    """
    file_path = PurePosixPath(path.strip())
    root = place.worktree.resolve()
    for prefix in (place.worktree, root):
        if file_path.is_relative_to(prefix):
            file_path = file_path.relative_to(prefix)
    if file_path.is_absolute() or ".." in file_path.parts:
        raise EvidenceError(f"{path!r} lies outside the worktree: give a path relative to the repository's root.")
    if not file_path.parts or file_path.parts[0] == ".git":
        raise EvidenceError(f"{path!r} does not name a file in the worktree.")
    _check_plan(root, place.worktree / file_path, str(file_path))
    return str(file_path)


def _check_plan(root: Path, file: Path, name: str) -> None:
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(root) or real.is_relative_to(root / ".git"):
            raise EvidenceError(f"{name!r} is a symlink that points outside the worktree.")
        if not real.is_file():
            raise EvidenceError(f"{name!r} is not a plain file.")
        if real.stat().st_size == 0:
            raise EvidenceError(f"{name!r} is empty.")
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError is a loop of symlinks before Python 3.13, ValueError a name that no file can have.
        raise EvidenceError(f"There is no file {name!r} in the worktree.") from error


def plan_items(place: Place, there: Snapshot, name: str, path: str) -> dict[bytes, Item]:
    """Return, by path, the plan's file, and its parent folders unless the snapshot `there` has these.

    Args:
        there: The snapshot to which the caller adds the plan.
        name: The snapshot that has the plan.

    Raises:
        WorkspaceError: The snapshot `name` has no such file, or another file is in the place of its folder.
    """
    vault, own = vault_at(place), path.encode()
    items = read(vault, find(vault, name).commit)
    file = items.get(own)
    if file is None or file.mode not in {FILE, PROGRAM}:
        raise WorkspaceError(
            f"Snapshot {name} has no plain file {path}.", remedy="Let the planner write a plain file."
        )
    have = read(vault, there.commit)
    folders = {folder: items[folder] for folder in reversed(list(above(own))) if folder in items}
    if clashes := [folder for folder in folders if folder in have and have[folder].mode != FOLDER]:
        raise WorkspaceError(
            f"{clashes[0].decode(errors='replace')} is not a folder in the base commit: {path} cannot go there.",
            remedy="Let the planner choose another folder.",
        )
    return {folder: item for folder, item in folders.items() if folder not in have} | {own: file}


def holds_plan(place: Place, snapshot: Snapshot, path: str, sha256: str) -> bool:
    """Return whether a snapshot has a file with this digest at `path`."""
    vault = vault_at(place)
    file = read(vault, snapshot.commit).get(path.encode())
    if file is None or file.mode not in {FILE, PROGRAM}:
        return False
    _, content = next(read_blobs(vault, {file.sha: file.size}))
    return hashlib.sha256(content).hexdigest() == sha256


def put_plan_back(place: Place, current: Snapshot, source: Snapshot, path: str, options: SnapshotOptions) -> None:
    """Restore a plan's file from the snapshot `source`; all other files stay as in `current`.

    Raises:
        WorkspaceError: `source` has no such file, or another file is in the place of its folder.
        SnapshotError: The file cannot be written.
    """
    return_to(place, current, options, adding=plan_items(place, current, source.name, path))


def switch(
    place: Place, start: Snapshot, options: SnapshotOptions, plan: tuple[str, str] | None = None
) -> Snapshot | None:
    """Restore a snapshot in a lane, add the plan, and return the rescue of the earlier state.

    No rescue is needed if the earlier state equals the lane's last snapshot; the result is then `None`.

    Args:
        plan: The name of a snapshot in the same vault, and the path of the plan's file in the snapshot.

    Raises:
        NotFoundError, WorkspaceError: The snapshot does not exist, or does not have the file.
        SnapshotError: No snapshot could be taken first; nothing was changed.
    """
    ends = first_and_last(vault_at(place), place.order_id)
    adding = plan_items(place, start, *plan) if plan is not None else None
    options = replace(options, equal_to=ends[1] if ends else None)
    return return_to(place, start, options, adding=adding, passes_on=True)
