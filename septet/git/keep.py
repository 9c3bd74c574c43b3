"""Keep a work order's snapshots on the checkpoint remote, with what is needed to open its workspace elsewhere."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from septet.errors import NotFoundError, WorkspaceError
from septet.git.checkpoint_remote import Shelf, StaleError
from septet.git.engine import Git
from septet.git.locks import locked
from septet.git.place import Place
from septet.git.snapshots.contents import FILE, FOLDER, tree_content
from septet.git.snapshots.ledger import Entry, Kind
from septet.git.snapshots.pack import Pack
from septet.git.snapshots.snapshot import Snapshot
from septet.git.snapshots.vault import list_snapshots, vault_at

BOOKS: Final = ("papers.json", "pushed.json", "rescues.jsonl", "workspace.json")
"""The engine's own files of a work order that go along; the record comes last, for it says that all is there."""

_SIGNATURE: Final = "Septet <septet@localhost>"
_HOST, _NAMES, _LATEST = "host", "snapshots", "latest"


class MovedError(WorkspaceError):
    """The work order has moved to another host."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one commit of the chain says."""

    commit: str
    host: str
    """The id of the host that wrote it: the holder of the work order, where it is the last one."""
    snapshots: Mapping[str, str]
    """Name → commit of every snapshot so far, oldest first."""


def keep(place: Place, shelf: Shelf, host: str) -> None:
    """Bring the snapshots that the remote does not have yet to it; one push, of what is new.

    What a push before this one could not bring goes along.

    Raises:
        MovedError: Another host holds the work order.
        GitUnavailableError: The remote was not reached.
        GitError: It refused.
        OSError: The disk did.
    """
    with locked(place.books / "kept.lock"):
        vault = vault_at(place)
        known = _known(vault, shelf)
        snapshots = list_snapshots(vault, place.order_id)
        new = _new(vault, snapshots, known)
        if not new:
            return
        try:
            shelf.push(vault, _compose(place, host, known, snapshots, new), known)
        except StaleError:
            known = _after_another_push(vault, shelf, host)
            shelf.push(vault, _compose(place, host, known, snapshots, _new(vault, snapshots, known)), known)


def take_hold(place: Place, shelf: Shelf, host: str, tip: str) -> None:
    """Make `host` the holder of the work order, if the chain still ends with `tip`.

    Raises:
        StaleError: Somebody else was faster.
        GitError: The remote refused.
    """
    with locked(place.books / "kept.lock"):
        vault = vault_at(place)
        snapshots = list_snapshots(vault, place.order_id)
        shelf.push(vault, _compose(place, host, tip, snapshots, _new(vault, snapshots, tip)), tip)


def expect_hold(place: Place, shelf: Shelf, host: str) -> None:
    """See that the work order has not moved to another host.

    Raises:
        MovedError: It has.
        GitUnavailableError: The remote was not reached.
        GitError: It refused.
    """
    vault = vault_at(place)
    tip = shelf.tip(vault)
    if tip is not None and tip != _known(vault, shelf):
        _expect_host(read_kept(vault, shelf.fetch(vault)), host)


def is_kept_elsewhere(place: Place, shelf: Shelf, snapshot: Snapshot) -> bool:
    """Say whether the checkpoint remote has a snapshot: asked of the remote, now.

    Raises:
        GitUnavailableError: The remote was not reached.
        GitError: It refused.
    """
    vault = vault_at(place)
    try:
        tip = shelf.tip(vault)
        if tip is None:
            return False
        if vault.completed("cat-file", "-e", tip).exit_code != 0:
            tip = shelf.fetch(vault)
    except NotFoundError:
        return False
    return vault.completed("merge-base", "--is-ancestor", snapshot.commit, tip).exit_code == 0


def read_kept(vault: Git, commit: str) -> Kept:
    """Return what a commit of the chain says.

    Raises:
        GitError: It is none.
    """
    names = vault.run("cat-file", "blob", f"{commit}:{_NAMES}").decode().splitlines()
    pairs = (line.split(" ", 1) for line in names)
    host = vault.text("cat-file", "blob", f"{commit}:{_HOST}")
    return Kept(commit, host, {name: snapshot for snapshot, name in pairs})


def read_book(vault: Git, kept: Kept, name: str) -> bytes | None:
    """Return one of `BOOKS` as it was when the commit was made; `None` where there was none."""
    completed = vault.completed("cat-file", "blob", f"{kept.commit}:{name}")
    return completed.stdout if completed.exit_code == 0 else None


def _known(vault: Git, shelf: Shelf) -> str | None:
    """Return what this host knows to be the end of the chain."""
    completed = vault.completed("rev-parse", "--verify", "--quiet", shelf.local)
    return completed.stdout.decode().strip() or None


def _after_another_push(vault: Git, shelf: Shelf, host: str) -> str | None:
    """Return where the chain ends, which is not where this host thought: it may have died before it noted it.

    Raises:
        MovedError: Another host holds the work order.
    """
    if shelf.tip(vault) is None:
        return None
    tip = shelf.fetch(vault)
    _expect_host(read_kept(vault, tip), host)
    return tip


def _expect_host(kept: Kept, host: str) -> None:
    if kept.host != host:
        message = f"The work order has moved to host {kept.host}; what is done here does not count any more."
        raise MovedError(message, remedy="`septet rescue list` shows what this host still has of it.")


def _new(vault: Git, snapshots: Sequence[Snapshot], known: str | None) -> list[str]:
    """Return the commits of the snapshots that are not in the chain; a snapshot's commit has no parent."""
    commits = [snapshot.commit for snapshot in snapshots]
    if known is None or not commits:
        return commits
    return vault.run("rev-list", "--reverse", *commits, f"^{known}").decode().split()


def _compose(
    place: Place, host: str, before: str | None, snapshots: Sequence[Snapshot], new: Sequence[str]
) -> str:
    """Make the next commit of the chain. Its parents are the one before it, or the base, and the new snapshots.

    Its tree holds the latest snapshot's, so that a push finds in the tree before it, or in the base's, what the
    remote has already: a snapshot's own commit stands alone.
    """
    names = "".join(f"{snapshot.commit} {snapshot.name}\n" for snapshot in snapshots)
    files = {_HOST: host.encode(), _NAMES: names.encode()}
    files |= {name: (place.books / name).read_bytes() for name in BOOKS if (place.books / name).exists()}
    with Pack(place.vault) as pack:
        entries = {
            name.encode(): Entry(FILE, pack.add("blob", content), Kind.TRACKED) for name, content in files.items()
        }
        latest = snapshots[-1]
        entries[_LATEST.encode()] = Entry(FOLDER, bytes.fromhex(latest.content), Kind.TRACKED)
        tree = pack.add("tree", tree_content(entries)).hex()
        parents = [before or place.base_sha, *new]
        commit = pack.add("commit", _commit(tree, parents, f"{latest.name} on host {host}"))
        pack.publish()
    return commit.hex()


def _commit(tree: str, parents: list[str], subject: str) -> bytes:
    signature = f"{_SIGNATURE} {int(time.time())} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    return "\n".join([*lines, f"author {signature}", f"committer {signature}", "", subject, ""]).encode()
