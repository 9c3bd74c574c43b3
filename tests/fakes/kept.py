"""The content of a checkpoint remote, read from the remote."""

from septet.git.checkpoints.checkpoint_remote import CheckpointRef
from septet.git.engine.place import Place
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import vault_at


def is_kept_elsewhere(place: Place, shelf: CheckpointRef, snapshot: Snapshot) -> bool:
    vault = vault_at(place)
    if shelf.tip(vault) is None:
        return False
    tip = shelf.fetch(vault)
    return vault.try_run("merge-base", "--is-ancestor", snapshot.commit, tip).exit_code == 0
