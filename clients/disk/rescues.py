"""Find the snapshots that this host keeps."""

from collections.abc import Mapping
from datetime import UTC, datetime

from clients.disk.runs import lanes_of, owner_of
from septet.contracts.replies import KeptSnapshot
from septet.errors import NotFoundError
from septet.git.engine.engine import Git
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, list_snapshots, vaults_in
from septet.state import StateDir


def snapshots_of(
    state: StateDir, git_env: Mapping[str, str], order_id: str | None = None, *, everything: bool = False
) -> tuple[KeptSnapshot, ...]:
    """Return the rescues on this host, oldest first; with `everything` the checkpoints too.

    Those of a work order of a pipeline are named after the lane in which it worked.
    """
    places = [None] if order_id is None else [order_id, *lanes_of(state, order_id)]
    snapshots = [
        snapshot
        for vault in vaults_in(state.vaults, git_env)
        for place_id in places
        for snapshot in list_snapshots(vault, place_id)
        if everything or snapshot.kind == "rescue"
    ]
    snapshots.sort(key=lambda snapshot: snapshot.taken_at)
    rows = [kept_snapshot(state, snapshot) for snapshot in snapshots]
    return tuple(row for row in rows if order_id in {None, row.work_order_id, row.snapshot.rpartition("/")[0]})


def snapshot_named(state: StateDir, git_env: Mapping[str, str], name: str) -> tuple[Git, Snapshot]:
    """Return a snapshot of this host, and the vault that holds it.

    Raises:
        NotFoundError: No vault of this host has the snapshot.
    """
    for vault in vaults_in(state.vaults, git_env):
        try:
            return vault, find(vault, name)
        except NotFoundError:
            continue
    raise NotFoundError(f"There is no snapshot {name} on this host.", remedy="See `septet rescue list`.")


def kept_snapshot(state: StateDir, snapshot: Snapshot) -> KeptSnapshot:
    """Return a snapshot as every face shows it; one of a lane with whose work it is, as far as that is known."""
    begins = snapshot.kind == "checkpoint" and snapshot.step is None
    age = datetime.now(UTC) - datetime.fromisoformat(snapshot.taken_at)
    return KeptSnapshot(
        snapshot=snapshot.name,
        work_order_id=owner_of(state, snapshot.order_id, snapshot.taken_at, begins=begins),
        kind=snapshot.kind,
        reason=snapshot.reason,
        step=snapshot.step,
        taken_at=snapshot.taken_at,
        age_seconds=round(age.total_seconds()),
        size_bytes=snapshot.size_bytes,
        commit=snapshot.commit,
        left_out=tuple(item.path for item in snapshot.left_out),
    )
