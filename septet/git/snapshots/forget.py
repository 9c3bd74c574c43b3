"""Remove the snapshots and folders of closed work orders.

The caller must check that the retention time of a snapshot or a folder is over.
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
from septet.git.vault.vault import vault_at
from septet.system.durable import hold_lock


def remove_closed(folder: Path, trash: Path) -> None:
    """Remove a folder that no open work order needs: runs, records, a vault or a mirror, but never a worktree.

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
    """Remove the content that a killed janitor left in the trash.

    Raises:
        OSError: A file cannot be removed.
    """
    for path in sorted(trash.iterdir()) if trash.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)


def forget_snapshots(place: Place, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots of a work order whose workspace is gone, by removing the snapshots' refs.

    Raises:
        GitError: A snapshot's ref has changed meanwhile.
    """
    with hold_lock(place.records / "snapshot.lock"):
        forget_brought(vault_at(place), snapshots)


def forget_brought(vault: Git, snapshots: Iterable[Snapshot]) -> None:
    """Forget snapshots that were fetched from another host, of a workspace that never was on this host.

    Raises:
        GitError: A snapshot's ref has changed meanwhile.
    """
    for snapshot in snapshots:
        vault.run("update-ref", "-d", snapshot.ref, snapshot.commit)


def forget_chain(vault: Git, order_id: str) -> None:
    """Remove the vault's refs to the commits on the checkpoint remote, after the last snapshot is forgotten.

    Raises:
        GitError: git failed.
    """
    chain = (f"refs/kept/{order_id}/", f"refs/seen/{order_id}/")
    for ref in vault.run("for-each-ref", "--format=%(refname)", *chain).decode().splitlines():
        vault.run("update-ref", "-d", ref)


def has_forgotten(vault: Git, kept_for: timedelta) -> bool:
    """Return whether `drop_forgotten` can free disk space: a pack of unneeded objects is older than `kept_for`."""
    return any(is_older(path, kept_for) for path in (vault.git_dir / "objects" / "pack").glob("*.mtimes"))


def drop_forgotten(vault: Git, kept_for: timedelta) -> None:
    """Delete objects that no snapshot has needed for `kept_for`; younger objects may be needed by a new snapshot.

    Younger unneeded objects are in a separate pack, a cruft pack of git, which records the age of each object.

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
