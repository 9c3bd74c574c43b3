"""Find and restore the snapshots in this host's vaults."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from clients.disk.runs import lanes_of, owner_of
from septet.contracts.host_files import KeptSnapshot
from septet.contracts.replies import RescuesReply, RestoredReply
from septet.errors import NotFoundError, RefusedTransitionError
from septet.git.engine.engine import Git
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import find, list_snapshots, vaults_in
from septet.state import StateDir


def snapshots_of(
    state: StateDir, git_env: Mapping[str, str], order_id: str | None = None, *, everything: bool = False
) -> tuple[KeptSnapshot, ...]:
    """Return the rescues on this host, oldest first; with `everything`, return the checkpoints too.

    In a pipeline, a snapshot has the name of the lane, not of the work order.
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
    """Return the vault that holds the named snapshot, and the snapshot.

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
    """Return a snapshot as replies show it, with the work order to which the snapshot belongs."""
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


@dataclass(frozen=True, slots=True)
class Rescues:
    """Lists and restores the rescues of this host, for the HTTP API and the MCP tools."""

    state: StateDir
    git_env: Mapping[str, str]

    async def list(self, order_id: str | None = None, *, everything: bool = False) -> RescuesReply:
        """Return the rescues on this host; with `everything`, return the checkpoints too."""
        rows = await asyncio.to_thread(snapshots_of, self.state, self.git_env, order_id, everything=everything)
        return RescuesReply(rescues=rows)

    async def restore(self, name: str) -> RestoredReply:
        """Restore a snapshot of this host to a new folder of the state directory.

        Raises:
            RefusedTransitionError: The snapshot was restored before.
            NotFoundError: This host has no such snapshot.
        """
        return await asyncio.to_thread(self._restore, name)

    def _restore(self, name: str) -> RestoredReply:
        target = self.state.restores / name
        vault, stored = snapshot_named(self.state, self.git_env, name)
        if target.exists() and any(target.iterdir()):
            remedy = "Look there, or move that folder away and restore it again."
            raise RefusedTransitionError(f"{name} was already restored to {target}.", remedy=remedy)
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        restore(vault, stored, target)
        return RestoredReply(rescue=kept_snapshot(self.state, stored), restored_to=str(target))
