"""A plan's file, taken from a snapshot and put into a worktree as it was there."""

import hashlib

from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import return_to
from septet.git.vault.contents import FILE, FOLDER, PROGRAM
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.layout import Item, read
from septet.git.vault.objects import read_blobs
from septet.git.vault.survey import above
from septet.git.vault.vault import find, vault_at


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
