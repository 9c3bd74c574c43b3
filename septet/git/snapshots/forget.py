"""Delete the snapshots and folders of closed work orders.

The caller checks that their retention time is over.
"""

import math
import secrets
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from septet.errors import SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.packs import PACKING_SECONDS, clear_unfinished_packs, is_older
from septet.git.engine.place import Place, vault_lock
from septet.git.snapshots.removal import remove_folder
from septet.git.vault.facts import Snapshot
from septet.git.vault.vault import ref_of, vault_at
from septet.system.durable import hold_lock


def remove_closed(folder: Path, trash: Path) -> None:
    """Delete a folder that no open work order needs: runs, records, a vault or a mirror, but never a worktree.

    The folder moves at once to the trash on the same disk, and is deleted there. The caller holds the locks.

    Raises:
        SnapshotError: The folder is a link.
        OSError: A file cannot be removed; `clear_trash` tries again.
    """
    if folder.is_symlink():
        raise SnapshotError(f"{folder} is a link.", remedy="Find out who put it there; Septet leaves it as it is.")
    trash.mkdir(mode=0o700, exist_ok=True)
    aside = trash / secrets.token_hex(8)
    folder.rename(aside)
    remove_folder(aside)


def clear_trash(trash: Path) -> None:
    """Delete what a killed janitor left in the trash.

    Raises:
        OSError: A file cannot be removed.
    """
    for path in sorted(trash.iterdir()) if trash.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)


def forget_snapshots(place: Place, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots of a work order without a workspace, by deleting their refs.

    Raises:
        GitError: A snapshot's ref has changed meanwhile.
    """
    with hold_lock(place.records / "snapshot.lock"):
        forget_brought(vault_at(place), snapshots)


def forget_brought(vault: Git, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots that were fetched from another host and whose workspace was never here.

    Raises:
        GitError: A snapshot's ref has changed meanwhile.
    """
    for snapshot in snapshots:
        vault.run("update-ref", "-d", ref_of(snapshot.name), snapshot.commit)


def forget_chain(vault: Git, order_id: str) -> None:
    """Delete the refs that record which commits the checkpoint remote has, for a work order without snapshots.

    Raises:
        GitError: git failed.
    """
    chain = (f"refs/kept/{order_id}/", f"refs/seen/{order_id}/")
    for ref in vault.run("for-each-ref", "--format=%(refname)", *chain).decode().splitlines():
        vault.run("update-ref", "-d", ref)


def has_forgotten(vault: Git, kept_for: timedelta) -> bool:
    """Return whether the vault has a pack of unneeded objects that is older than `kept_for`."""
    return any(is_older(path, kept_for) for path in (vault.git_dir / "objects" / "pack").glob("*.mtimes"))


def drop_forgotten(vault: Git, kept_for: timedelta) -> None:
    """Delete the objects that no snapshot has needed for `kept_for`.

    Younger ones may belong to an unfinished snapshot. They stay in a separate pack, which records their ages.

    Raises:
        GitError: git failed; no space was freed, and no needed object was lost.
    """
    expiry = f"{math.ceil(kept_for.total_seconds())}.seconds.ago"
    with hold_lock(vault_lock(vault.git_dir)):
        clear_unfinished_packs(vault.git_dir, kept_for)
        vault.run(
            *("repack", "--cruft", f"--cruft-expiration={expiry}", "-d", "-l", "-q"),
            timeout_seconds=PACKING_SECONDS,
        )
        vault.run("prune", f"--expire={expiry}", timeout_seconds=PACKING_SECONDS)
