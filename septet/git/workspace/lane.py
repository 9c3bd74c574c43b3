"""A lane: one workspace that many work orders use, one after the other. Each finds it as if it were new."""

from dataclasses import replace

from septet.git.engine.place import Place
from septet.git.snapshots.destroy import return_to
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import first_and_last, vault_at
from septet.git.workspace.plan import plan_items


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
