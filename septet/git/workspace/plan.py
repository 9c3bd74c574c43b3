"""Restore a snapshot in a workspace together with a plan's file."""

import hashlib
from dataclasses import replace

from septet.errors import WorkspaceError
from septet.git.engine.objects import read_blobs
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import return_to
from septet.git.vault.facts import FILE, FOLDER, PROGRAM, Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read
from septet.git.vault.survey import above
from septet.git.vault.vault import find, first_and_last, vault_at


def plan_items(place: Place, there: Snapshot, name: str, path: str) -> dict[bytes, Item]:
    """Return the plan's file, and its folders that a snapshot lacks, as items by path.

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

    `None` if the earlier state equals the lane's last snapshot, which has the previous work order's work.

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
