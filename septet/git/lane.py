"""A lane: one workspace that many work orders use, one after the other. Each finds it as if it were new."""

from septet.errors import WorkspaceError
from septet.git.destroy import Why, return_to
from septet.git.place import Place
from septet.git.snapshots.contents import FILE, FOLDER, PROGRAM
from septet.git.snapshots.facts import Snapshot
from septet.git.snapshots.layout import Item, read
from septet.git.snapshots.survey import above
from septet.git.snapshots.vault import find, first_and_last, vault_at


def switch(place: Place, start: Snapshot, why: Why, plan: tuple[str, str] | None = None) -> Snapshot | None:
    """Make a lane as it was at `start`, with the plan in it, and return the rescue of what nobody had kept.

    What the work order before has left is in its last snapshot: only what differs from that is rescued.

    Args:
        place: The lane.
        start: One of its snapshots.
        why: What the rescue says.
        plan: The name of a snapshot of the same repository, and the path of the file to take from it.

    Raises:
        NotFoundError, WorkspaceError: There is no such snapshot, or no such file in it.
        SnapshotError: What is there could not be secured first; then nothing was changed.
    """
    ends = first_and_last(vault_at(place), place.order_id)
    adding = _plan(place, start, *plan) if plan is not None else None
    return return_to(place, start, why, secured_by=ends[1] if ends else None, adding=adding)


def _plan(place: Place, start: Snapshot, name: str, path: str) -> dict[bytes, Item]:
    """Return the plan's file, and the folders that it needs, as the vault has them."""
    vault, own = vault_at(place), path.encode()
    items = read(vault, find(vault, name).commit)
    file = items.get(own)
    if file is None or file.mode not in {FILE, PROGRAM}:
        raise WorkspaceError(
            f"Snapshot {name} has no plain file {path}.",
            remedy="Let the planner write a plain file.",
        )
    there = read(vault, start.commit)
    folders = {folder: items[folder] for folder in reversed(list(above(own))) if folder in items}
    if clashes := [folder for folder in folders if folder in there and there[folder].mode != FOLDER]:
        raise WorkspaceError(
            f"{clashes[0].decode(errors='replace')} is not a folder in the base commit: {path} cannot go there.",
            remedy="Let the planner choose another folder.",
        )
    return {folder: item for folder, item in folders.items() if folder not in there} | {own: file}
