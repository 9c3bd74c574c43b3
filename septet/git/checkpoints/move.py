"""Open a work order's workspace on this host, from the snapshots that another host has pushed."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from septet.errors import NotFoundError, WorkspaceError
from septet.git.checkpoints.checkpoint_remote import CheckpointRef
from septet.git.checkpoints.keep import RECORDS, ChainState, read_chain_state, read_file, take_hold
from septet.git.engine.engine import Git
from septet.git.engine.place import LOCK_SUFFIX, Place
from septet.git.engine.remote import Remote
from septet.git.snapshots.destroy import return_to
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import find, names_of_kind, next_name, points_to, prepare, publish, vault_at
from septet.git.workspace.mirror import refresh_mirror
from septet.git.workspace.workspace import fresh_config
from septet.git.worktree.view import make_view, view_folder
from septet.system.durable import hold_lock, write_durably


@dataclass(frozen=True, slots=True)
class WorkspaceMove:
    """What this host needs to take over a work order."""

    place: Place
    """The work order's folders on this host."""
    checkpoint_ref: CheckpointRef
    origin: Remote
    checkpoint: str
    """The snapshot from which to continue; empty for the last one on the remote."""
    host: str
    """This host's id."""


def prepare_host(move: WorkspaceMove) -> None:
    """Fetch the origin into the mirror, and create the vault if this host has none.

    Raises:
        NotFoundError: The origin does not exist, or no longer has the branch or the base commit.
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    place = move.place
    refresh_mirror(place.mirror, move.origin, place.base_branch)
    if Git(place.mirror, env=place.env).try_run("cat-file", "-e", f"{place.base_sha}^{{commit}}").exit_code != 0:
        raise NotFoundError(
            f"{place.origin} no longer has the base commit {place.base_sha}.",
            remedy="Push that commit to it again, or start a worker on the state directory that has it.",
        )
    prepare(place)


def is_here(move: WorkspaceMove) -> bool:
    """Return whether the remote names this host as the work order's host, and the workspace is here.

    Raises:
        NotFoundError: The checkpoint remote has no chain of the work order.
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
    """
    vault = vault_at(move.place)
    return (
        move.place.worktree.exists()
        and read_chain_state(vault, move.checkpoint_ref.fetch(vault)).host == move.host
    )


def move_here(move: WorkspaceMove, options: SnapshotOptions) -> ChainState:
    """Restore the workspace at the checkpoint, and record on the remote that this host has the work order.

    Returns the content of the remote's last commit before the move. Idempotent. An older worktree of the work
    order on this host is rescued first.

    Raises:
        NotFoundError: The checkpoint is not on the remote, or this host cannot get the repository.
        SnapshotError: The workspace could not be written.
        GitUnavailableError: A remote was not reached.
        GitError: A remote refused, or another host was faster.
    """
    place, vault = move.place, vault_at(move.place)
    with hold_lock(place.worktree.with_name(f"{place.order_id}{LOCK_SUFFIX}")):
        chain = read_chain_state(vault, move.checkpoint_ref.fetch(vault))
        _take_over(move, chain)
        snapshot = find(vault, move.checkpoint or list(chain.snapshots)[-1])
        if place.worktree.exists():
            return_to(place, snapshot, options)
        else:
            fresh = place.worktree.with_name(f"{place.order_id}~new")
            _make_view(place, fresh)
            restore(vault, snapshot, fresh, borrows=True)
            fresh.rename(place.worktree)
        take_hold(place, move.checkpoint_ref, move.host, chain.commit)
        return chain


def bring_snapshot(place: Place, ref: CheckpointRef, name: str) -> None:
    """Copy a snapshot from the checkpoint remote into this host's vault, and nothing else.

    Raises:
        NotFoundError: The remote does not have the snapshot.
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
    """
    vault = vault_at(place)
    chain = read_chain_state(vault, ref.fetch(vault))
    _expect(chain, name, ref)
    publish(place, name, chain.snapshots[name])


def _take_over(move: WorkspaceMove, chain: ChainState) -> None:
    """Write to this host the names of the remote's snapshots, and the records in the remote's last commit."""
    place, vault = move.place, vault_at(move.place)
    if move.checkpoint:
        _expect(chain, move.checkpoint, move.checkpoint_ref)
    with hold_lock(place.records / "snapshot.lock"):
        for name, commit in chain.snapshots.items():
            if (old := points_to(place, name)) not in {"", commit}:
                _name_again(place, name, old, chain)  # taken here, after the other host had continued
        for name, commit in chain.snapshots.items():
            publish(place, name, commit)
    for name in RECORDS:
        content = read_file(vault, chain, name)
        if content is not None:
            write_durably(place.records / name, content)
        elif name == RECORDS[-1]:
            raise WorkspaceError(
                f"{move.checkpoint_ref.ref} of {move.checkpoint_ref.remote.url} holds no record of a workspace."
            )


def _name_again(place: Place, name: str, commit: str, chain: ChainState) -> None:
    """Rename a snapshot of this host if the checkpoint remote has another snapshot with the same name.

    A repeated call after a kill does not rename it again.
    """
    kind = name.rpartition("-")[2]
    others = set(names_of_kind(place, kind)) - set(chain.snapshots)
    if commit not in {points_to(place, other) for other in others}:
        publish(place, next_name(place, kind, None, others=chain.snapshots), commit)


def _expect(chain: ChainState, name: str, ref: CheckpointRef) -> None:
    if name not in chain.snapshots:
        last = list(chain.snapshots)[-1]
        message = f"Checkpoint {name} never reached {ref.remote.url}; the last one there is {last}."
        raise NotFoundError(message, remedy="Start a worker on the state directory that has it.")


def _make_view(place: Place, fresh: Path) -> None:
    """Make Septet's view of the future worktree, with the base commit's index; `fresh` is a temporary folder."""
    shutil.rmtree(fresh, ignore_errors=True)  # of an attempt that died; no agent has used it
    make_view(place, fresh_config(place, fresh))
    shutil.rmtree(fresh)
    Git(place.mirror, env=place.env, index=view_folder(place) / "index").run("read-tree", place.base_sha)
