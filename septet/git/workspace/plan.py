"""Return a workspace to a snapshot together with a plan's file, for a lane or after the plan was changed."""

import hashlib
from dataclasses import replace

from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import return_to
from septet.git.vault.contents import FILE, FOLDER, PROGRAM
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read
from septet.git.vault.objects import read_blobs
from septet.git.vault.survey import above
from septet.git.vault.vault import find, first_and_last, vault_at


def plan_items(place: Place, there: Snapshot, name: str, path: str) -> dict[bytes, Item]:
    """Return the plan's file, and the folders that it needs beside what is there, as the vault has them.

    Args:
        place: Where it is to go.
        there: The snapshot that it is added to.
        name: The snapshot to take it from.
        path: The file's.

    Raises:
        WorkspaceError: That snapshot has no such file, or there is something else in its place.
    """
    vault, own = vault_at(place), path.encode()
    items = read(vault, find(vault, name).commit)
    file = items.get(own)
    if file is None or file.mode not in {FILE, PROGRAM}:
        raise WorkspaceError(
            f"Snapshot {name} has no plain file {path}.",
            remedy="Let the planner write a plain file.",
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
    """Say whether a snapshot has a plan with this digest at `path`."""
    vault = vault_at(place)
    file = read(vault, snapshot.commit).get(path.encode())
    if file is None or file.mode not in {FILE, PROGRAM}:
        return False
    return all(
        hashlib.sha256(content).hexdigest() == sha256 for _, content in read_blobs(vault, {file.sha: file.size})
    )


def put_plan_back(place: Place, current: Snapshot, source: Snapshot, path: str, options: SnapshotOptions) -> None:
    """Let a plan's file be what it was in a snapshot; all else stays as it is.

    Args:
        place: The workspace.
        current: The snapshot that holds what is there.
        source: The snapshot to take the file from.
        path: The file's.
        options: What a rescue says, should one be needed.

    Raises:
        WorkspaceError: There is something else in its place.
        SnapshotError: It cannot be written.
    """
    return_to(place, current, options, adding=plan_items(place, current, source.name, path))


def switch(
    place: Place, start: Snapshot, options: SnapshotOptions, plan: tuple[str, str] | None = None
) -> Snapshot | None:
    """Make a lane as it was at `start`, with the plan in it, and return the rescue of what nobody had kept.

    What the work order before has left is in its last snapshot: only what differs from that is rescued.

    Args:
        place: The lane.
        start: One of its snapshots.
        options: What the rescue says.
        plan: The name of a snapshot of the same repository, and the path of the file to take from it.

    Raises:
        NotFoundError, WorkspaceError: There is no such snapshot, or no such file in it.
        SnapshotError: What is there could not be secured first; then nothing was changed.
    """
    ends = first_and_last(vault_at(place), place.order_id)
    adding = plan_items(place, start, *plan) if plan is not None else None
    options = replace(options, equal_to=ends[1] if ends else None)
    return return_to(place, start, options, adding=adding, passes_on=True)
