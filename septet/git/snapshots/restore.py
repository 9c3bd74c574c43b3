"""Restore a snapshot to a separate folder, which then needs no workspace, vault or mirror."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from septet.errors import GitError, SnapshotError
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_blobs
from septet.git.snapshots.lay import lay
from septet.git.snapshots.own_repository import own_items
from septet.git.vault.facts import FOLDER, Snapshot
from septet.git.vault.layout import Item, read
from septet.git.vault.survey import OPEN_FOLDER
from septet.git.worktree.dot_git import read_file
from septet.git.worktree.view import borrowed_from
from septet.system.durable import close_after

_ALTERNATES: Final = Path("info") / "alternates"
_PACKED: Final = ("pack-*.pack", "pack-*.rev", "pack-*.idx")
"""The files of a pack in the order in which they are linked: the index last, because git looks for it first."""


def restore(vault: Git, snapshot: Snapshot, to: Path, *, borrows: bool = False) -> None:
    """Write a snapshot's content to the new or empty folder `to`.

    Everything is restored: files, permission bits, index, HEAD, branches, stash and an unfinished merge or rebase.
    The folder gets its own copies of objects unless it `borrows` the mirror's. Settings and hooks of agents are
    left out, so that a person's git does not run them.

    Raises:
        SnapshotError: `to` is not empty, or the snapshot cannot be read or written.
    """
    order_id = snapshot.order_id
    try:
        worktree = vault.git_dir.parent.parent / "workspaces" / order_id
        want = own_items(vault, order_id, read(vault, snapshot.commit), worktree)
        to.mkdir(parents=True, exist_ok=True)
        with close_after(os.open(to, OPEN_FOLDER)) as root:
            if any(to.iterdir()):
                raise SnapshotError(f"{to} is not empty.", remedy="Name a new folder.")
            lay(root, {b"": Item(FOLDER, "", 0o700, 0)}, want, partial(read_blobs, vault))
        if not borrows:
            _own_objects(vault, to / ".git" / "objects")
    except (OSError, GitError) as error:
        message = f"Snapshot {snapshot.name} could not be restored to {to}: {error}."
        remedy = "Nothing else was changed; name another folder, or make room."
        raise SnapshotError(message, remedy=remedy) from error


def _own_objects(vault: Git, objects: Path) -> None:
    """Link or copy the objects that a restored repository borrows, so that it no longer needs the mirror."""
    if not objects.is_dir() or any(path.is_symlink() for path in (objects.parent, objects, *objects.iterdir())):
        return  # nothing is written through an agent's link
    alternates = read_file(objects / _ALTERNATES)
    if alternates is None:
        return
    lenders = list(_lenders(vault.git_dir / "objects"))
    for lender in lenders:
        packs = (file for pattern in _PACKED for file in (lender / "pack").glob(pattern))
        for source in (*packs, *lender.glob("[0-9a-f][0-9a-f]/*")):
            _link(source, objects / source.relative_to(lender))
    names = {borrowed_from(lender.parent) for lender in lenders}
    others = [line for line in alternates.splitlines() if line not in names]
    if others:
        (objects / _ALTERNATES).write_bytes(b"\n".join([*others, b""]))
    else:
        (objects / _ALTERNATES).unlink()


def _lenders(objects: Path) -> Iterator[Path]:
    """Yield the folders from which a repository borrows objects, directly or through others."""
    for line in (read_file(objects / _ALTERNATES) or b"").splitlines():
        lender = objects / os.fsdecode(line)
        yield lender
        yield from _lenders(lender)


def _link(source: Path, to: Path) -> None:
    """Hard-link an object file, or copy the file if the link fails; object files never change."""
    to.parent.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        try:
            to.hardlink_to(source)
        except FileExistsError:
            raise
        except OSError:
            shutil.copyfile(source, to)
