"""Push a work order's snapshots to the checkpoint remote, with the records that another host needs to continue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from septet.errors import WorkspaceError
from septet.git.checkpoints.checkpoint_remote import CheckpointRef, StaleError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.facts import FILE, FOLDER, EntryKind, LedgerEntry, Snapshot, tree_content
from septet.git.vault.pack import Pack, commit_content
from septet.git.vault.vault import list_snapshots, vault_at
from septet.system.durable import hold_lock

RECORDS: Final = ("dot-git.json", "papers.json", "pushed.json", "rescues.jsonl", "rework.json", "workspace.json")
"""Septet's own files about a work order that are pushed with its snapshots.

A new host writes them in this order, so a host with a `workspace.json` has all of them.
"""

_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
_HOST, _NAMES, _LATEST = "host", "snapshots", "latest"


class MovedError(WorkspaceError):
    """The work order has moved to another host."""


@dataclass(frozen=True, slots=True)
class ChainState:
    """What one commit on the checkpoint remote says about a work order."""

    commit: str
    host: str
    """The host that wrote the commit; the host of the last commit has the work order."""
    snapshots: Mapping[str, str]
    """The commit of each snapshot so far by the snapshot's name, oldest first."""


def keep(place: Place, ref: CheckpointRef, host: str, extra: Mapping[str, bytes] = _NOTHING) -> None:
    """Push all snapshots that the remote does not have, in one push.

    Raises:
        MovedError: The work order has moved to another host.
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
    """Record on the remote that `host` has the work order now, if the last commit there is still `tip`.

    Raises:
        StaleError: Another host was faster.
        GitError: The remote refused.
    """
    with hold_lock(place.records / "kept.lock"):
        vault = vault_at(place)
        page = _Page(place, host, list_snapshots(vault, place.order_id), _NOTHING)
        ref.push(vault, page.after(tip), tip)


def claim(place: Place, ref: CheckpointRef, host: str) -> None:
    """Record on the remote that `host`, which has just opened the workspace, has the work order.

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
    """Raise if the work order has moved to another host.

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
    """Return what a commit from the checkpoint remote says about a work order.

    Raises:
        GitError: The commit has no record of a work order.
    """
    names = vault.run("cat-file", "blob", f"{commit}:{_NAMES}").decode().splitlines()
    pairs = (line.split(" ", 1) for line in names)
    host = vault.text("cat-file", "blob", f"{commit}:{_HOST}")
    return ChainState(commit, host, {name: snapshot for snapshot, name in pairs})


def read_file(vault: Git, chain: ChainState, name: str) -> bytes | None:
    """Return the content of the file `name` in the chain's commit; `None` if it is missing."""
    completed = vault.try_run("cat-file", "blob", f"{chain.commit}:{name}")
    return completed.stdout if completed.exit_code == 0 else None


def _known_tip(vault: Git, ref: CheckpointRef) -> str | None:
    """Return the remote's last commit that this host knows; `None` if this host knows none."""
    completed = vault.try_run("rev-parse", "--verify", "--quiet", ref.local)
    return completed.stdout.decode().strip() or None


def _after_another_push(vault: Git, ref: CheckpointRef, host: str) -> str | None:
    """Return the remote's last commit, if any, after a refused push; raise if another host wrote this commit."""
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
    """The content of the next commit in a work order's chain on the checkpoint remote."""

    place: Place
    host: str
    snapshots: Sequence[Snapshot]
    """All snapshots of the work order, at least one, oldest first."""
    extra: Mapping[str, bytes]

    def new_since(self, known_tip: str | None) -> list[str]:
        """Return the snapshots' commits that `known_tip`, the remote's last commit, does not contain."""
        commits = [snapshot.commit for snapshot in self.snapshots]
        if known_tip is None or not commits:
            return commits
        return vault_at(self.place).run("rev-list", "--reverse", *commits, f"^{known_tip}").decode().split()

    def after(self, before: str | None) -> str:
        """Return a new commit; its parents are the new snapshots, and `before` or else the base commit.

        Its tree includes the tree of the latest snapshot. A snapshot's commit has no parent, so only `before` or
        the base commit shows git which objects the remote has already.
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
