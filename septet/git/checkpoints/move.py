"""Open a work order's workspace on this host from what another one has kept on the checkpoint remote."""

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
from septet.git.snapshots.restore import restore_as_it_was
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import find, names_of_kind, next_name, points_to, prepare, publish, vault_at
from septet.git.workspace.mirror import refresh_mirror
from septet.git.workspace.workspace import fresh_config
from septet.git.worktree.view import make_view, view_folder
from septet.system.durable import write_durably
from septet.system.locks import hold_lock


@dataclass(frozen=True, slots=True)
class WorkspaceMove:
    """What a host needs to take a work order over."""

    place: Place
    """Where it will lie here."""
    checkpoint_ref: CheckpointRef
    origin: Remote
    checkpoint: str
    """The snapshot to go on from; empty: the last one that was kept."""
    host: str
    """This host's id."""


def prepare_host(move: WorkspaceMove) -> None:
    """Fetch the origin into the mirror and make the vault, where they are not here yet.

    Raises:
        NotFoundError: This host has no such repository, or it lost the branch or the base commit.
        GitUnavailableError: The origin was not reached.
        GitError: It refused.
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
    """Say whether this host holds the work order already and has its workspace.

    Raises:
        NotFoundError: The checkpoint remote keeps nothing of it.
        GitUnavailableError: It was not reached.
        GitError: It refused.
    """
    vault = vault_at(move.place)
    return (
        move.place.worktree.exists()
        and read_chain_state(vault, move.checkpoint_ref.fetch(vault)).host == move.host
    )


def move_here(move: WorkspaceMove, options: SnapshotOptions) -> ChainState:
    """Make the workspace as it was at the checkpoint and this host the holder of the work order.

    What the host before it kept last is returned.

    Idempotent: an attempt that comes after a dead one goes on from what is there. A worktree that this host has
    from an earlier time is returned to the checkpoint, after a rescue.

    Raises:
        NotFoundError: The checkpoint is not on the remote, or the repository is not to be had here.
        SnapshotError: The workspace could not be written.
        GitUnavailableError: A remote was not reached.
        GitError: It refused, or somebody else was faster.
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
            restore_as_it_was(vault, snapshot, fresh)
            fresh.rename(place.worktree)
        take_hold(place, move.checkpoint_ref, move.host, chain.commit)
        return chain


def bring_snapshot(place: Place, ref: CheckpointRef, name: str) -> None:
    """Put a snapshot into this host's vault, from what its own host has kept; the workspace is not moved.

    Args:
        place: Where that workspace would lie here.
        ref: Its place on the checkpoint remote.
        name: The snapshot's name.

    Raises:
        NotFoundError: The remote does not have it.
        GitUnavailableError: It was not reached.
        GitError: It refused.
    """
    vault = vault_at(place)
    chain = read_chain_state(vault, ref.fetch(vault))
    _expect(chain, name, ref)
    publish(place, name, chain.snapshots[name])


def _take_over(move: WorkspaceMove, chain: ChainState) -> None:
    """Take the snapshots' names and the engine's records over.

    Raises:
        NotFoundError: The checkpoint is not among them.
        WorkspaceError: The record is missing.
    """
    place, vault = move.place, vault_at(move.place)
    if move.checkpoint:
        _expect(chain, move.checkpoint, move.checkpoint_ref)
    with hold_lock(place.records / "snapshot.lock"):
        for name, commit in chain.snapshots.items():
            if (old := points_to(place, name)) not in {"", commit}:  # taken here, after the other host had gone on
                _name_again(place, name, old, chain)
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
    """Give a snapshot a name that the chain has not, before it loses its own; once, also after a kill."""
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
    """Make the engine's view with an index of the base commit, and leave `fresh` as a folder that is not there."""
    shutil.rmtree(fresh, ignore_errors=True)  # of an attempt that died; no agent has seen it
    make_view(place, fresh_config(place, fresh))
    shutil.rmtree(fresh)
    Git(place.mirror, env=place.env, index=view_folder(place) / "index").run("read-tree", place.base_sha)
