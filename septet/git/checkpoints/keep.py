"""Keep a work order's snapshots on the checkpoint remote, with the records to open its workspace elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from septet.errors import WorkspaceError
from septet.git.checkpoints.checkpoint_remote import CheckpointRef, StaleError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.contents import FILE, FOLDER, tree_content
from septet.git.vault.facts import Snapshot
from septet.git.vault.ledger import EntryKind, LedgerEntry
from septet.git.vault.pack import Pack, commit_content
from septet.git.vault.vault import list_snapshots, vault_at
from septet.system.locks import hold_lock

RECORDS: Final = ("dot-git.json", "papers.json", "pushed.json", "rescues.jsonl", "rework.json", "workspace.json")
"""The engine's files of a work order that the remote keeps too.

The files are copied to a new host in this order: a `workspace.json` there means that all files were copied.
"""

_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
_HOST, _NAMES, _LATEST = "host", "snapshots", "latest"


class MovedError(WorkspaceError):
    """The work order has moved to another host."""


@dataclass(frozen=True, slots=True)
class ChainState:
    """The facts of one commit of the chain."""

    commit: str
    host: str
    """The id of the host that wrote the commit; in the last commit, the holder of the work order."""
    snapshots: Mapping[str, str]
    """Name → commit of every snapshot so far, oldest first."""


def keep(place: Place, ref: CheckpointRef, host: str, extra: Mapping[str, bytes] = _NOTHING) -> None:
    """Push the snapshots that the remote does not have, in one push; snapshots of failed pushes are included.

    Raises:
        MovedError: Another host holds the work order.
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
        OSError: The disk refused.
    """
    with hold_lock(place.records / "kept.lock"):
        vault = vault_at(place)
        known_tip = _known_tip(vault, ref)
        page = _Page(place, host, list_snapshots(vault, place.order_id), extra)
        if not page.new_since(known_tip):
            return
        try:
            ref.push(vault, page.after(known_tip), known_tip)
        except StaleError:
            known_tip = _after_another_push(vault, ref, host)
            ref.push(vault, page.after(known_tip), known_tip)


def take_hold(place: Place, ref: CheckpointRef, host: str, tip: str) -> None:
    """Make `host` the holder of the work order, if the chain still ends with `tip`.

    Raises:
        StaleError: Another host was faster.
        GitError: The remote refused.
    """
    with hold_lock(place.records / "kept.lock"):
        vault = vault_at(place)
        page = _Page(place, host, list_snapshots(vault, place.order_id), _NOTHING)
        ref.push(vault, page.after(tip), tip)


def claim(place: Place, ref: CheckpointRef, host: str) -> None:
    """Make `host`, which opened the workspace last, the holder of the work order, whichever host held it before.

    Raises:
        StaleError: Another host was faster.
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
    """
    vault = vault_at(place)
    if ref.tip(vault) is None:
        return
    chain = read_chain_state(vault, ref.fetch(vault))
    if chain.host != host:
        take_hold(place, ref, host, chain.commit)


def expect_hold(place: Place, ref: CheckpointRef, host: str) -> None:
    """Check that the work order has not moved to another host.

    Raises:
        MovedError: The work order has moved.
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
    """
    vault = vault_at(place)
    tip = ref.tip(vault)
    if tip is not None and tip != _known_tip(vault, ref):
        _expect_host(read_chain_state(vault, ref.fetch(vault)), host)


def read_chain_state(vault: Git, commit: str) -> ChainState:
    """Return the facts of a commit of the chain.

    Raises:
        GitError: The commit is not part of a chain.
    """
    names = vault.run("cat-file", "blob", f"{commit}:{_NAMES}").decode().splitlines()
    pairs = (line.split(" ", 1) for line in names)
    host = vault.text("cat-file", "blob", f"{commit}:{_HOST}")
    return ChainState(commit, host, {name: snapshot for snapshot, name in pairs})


def read_file(vault: Git, chain: ChainState, name: str) -> bytes | None:
    """Return one of `RECORDS`, or an extra file, from a commit of the chain; `None` without such a file."""
    completed = vault.try_run("cat-file", "blob", f"{chain.commit}:{name}")
    return completed.stdout if completed.exit_code == 0 else None


def _known_tip(vault: Git, ref: CheckpointRef) -> str | None:
    """Return the last commit of the chain that this host knows."""
    completed = vault.try_run("rev-parse", "--verify", "--quiet", ref.local)
    return completed.stdout.decode().strip() or None


def _after_another_push(vault: Git, ref: CheckpointRef, host: str) -> str | None:
    """Return the chain's present end, after a refused push: this host may have died before it recorded a push."""
    if ref.tip(vault) is None:
        return None
    tip = ref.fetch(vault)
    _expect_host(read_chain_state(vault, tip), host)
    return tip


def _expect_host(chain: ChainState, host: str) -> None:
    if chain.host != host:
        message = f"The work order has moved to host {chain.host}; work done here no longer counts."
        remedy = "`septet rescue list` shows what this host has of it. If a retry brought it back to this host,"
        raise MovedError(
            message, remedy=f"{remedy} run `septet host-gone {host}` while it runs: it continues on another host."
        )


@dataclass(frozen=True, slots=True)
class _Page:
    """The content of the next commit of the chain."""

    place: Place
    host: str
    snapshots: Sequence[Snapshot]
    """All snapshots of the work order, oldest first; the work order has at least one snapshot."""
    extra: Mapping[str, bytes]

    def new_since(self, known_tip: str | None) -> list[str]:
        """Return the commits of the snapshots that are not in the chain; a snapshot's commit has no parent."""
        commits = [snapshot.commit for snapshot in self.snapshots]
        if known_tip is None or not commits:
            return commits
        return vault_at(self.place).run("rev-list", "--reverse", *commits, f"^{known_tip}").decode().split()

    def after(self, before: str | None) -> str:
        """Make the chain's next commit. The parents are `before`, or the base commit, and the new snapshots.

        The commit's tree holds the latest snapshot's tree. A snapshot's own commit has no parent, so a push finds
        the objects that the remote already has only by the trees of `before` or the base commit.
        """
        latest = self.snapshots[-1]
        with Pack(self.place.vault) as pack:
            entries = {
                name.encode(): LedgerEntry(FILE, pack.add("blob", content), EntryKind.TRACKED)
                for name, content in self._files().items()
            }
            entries[_LATEST.encode()] = LedgerEntry(FOLDER, bytes.fromhex(latest.content), EntryKind.TRACKED)
            tree = pack.add("tree", tree_content(entries)).hex()
            parents = [before or self.place.base_sha, *self.new_since(before)]
            message = f"{latest.name} on host {self.host}\n".encode()
            commit = pack.add("commit", commit_content(tree, parents, message))
            pack.publish()
        return commit.hex()

    def _files(self) -> dict[str, bytes]:
        names = "".join(f"{snapshot.commit} {snapshot.name}\n" for snapshot in self.snapshots)
        records = ((name, self.place.records / name) for name in RECORDS)
        contents = {name: path.read_bytes() for name, path in records if path.exists()}
        return {_HOST: self.host.encode(), _NAMES: names.encode(), **contents, **self.extra}
