"""What is known of a workspace before it is looked at: its ledger, or else what the base commit holds."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.engine.place import Place
from septet.git.vault.contents import FOLDER
from septet.git.vault.ledger import EntryKind, Mark, Record, load, new_ledger, save
from septet.git.vault.survey import join
from septet.git.vault.vault import list_snapshots, points_to, vault_at

LEDGER: Final = "ledger"
_KEPT: Final = 16
_KEPT_BYTES: Final = 4 << 20
"""The longest ledger that is kept in memory."""


@dataclass(frozen=True, slots=True)
class SnapshotBaseline:
    """What need not be found out again."""

    records: Mapping[bytes, Record] = field(default_factory=dict)
    usual: Mapping[int, int] | None = None
    """git's mode → permission bits, as the ledger counts on them."""
    last: str | None = None
    """The latest snapshot's name."""
    commit: str = ""
    """That snapshot's commit, where `records` is what it holds."""
    base: Mark | None = None
    """How the workspace was right after checkout."""
    objects: set[bytes] = field(default_factory=set)
    """Ids of objects that the vault has already."""
    tracked: frozenset[bytes] = frozenset()
    """Files and folders of the base commit; empty where `records` says it."""
    stamp: tuple[int, ...] = ()
    """What tells the ledger's file from any other one; empty where nothing is from it."""

    def heavy(self) -> frozenset[bytes]:
        """Return the ignored folders that were over the limit."""
        return frozenset(
            join(path, item.name)
            for path, record in self.records.items()
            for item in record.outside
            if item.entry.kind is EntryKind.IGNORED and item.entry.mode == FOLDER and not item.entry.sha
        )


class _Latest:
    """The baselines that this process has written or read last, whose ledgers need not be read again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._baselines: OrderedDict[Path, SnapshotBaseline] = OrderedDict()

    def keep(self, path: Path, baseline: SnapshotBaseline) -> None:
        """Keep what a ledger says, and forget what was kept longest."""
        if not baseline.stamp or baseline.stamp[-1] > _KEPT_BYTES:
            return
        with self._guard:
            self._baselines[path] = baseline
            self._baselines.move_to_end(path)
            if len(self._baselines) > _KEPT:
                self._baselines.popitem(last=False)

    def find(self, path: Path, stamp: tuple[int, ...]) -> SnapshotBaseline | None:
        """Return what the ledger says that has this stamp; `None` where it is not known."""
        with self._guard:
            baseline = self._baselines.get(path)
        # What the vault has beside the records belongs to one snapshot.
        return replace(baseline, objects=set()) if baseline is not None and baseline.stamp == stamp else None


_LATEST: Final = _Latest()


def write_baseline(place: Place, baseline: SnapshotBaseline) -> None:
    """Write what the latest snapshot holds as the ledger. Call it with the lock held."""
    path = place.records / LEDGER
    ledger = new_ledger(
        baseline.usual or {}, baseline.base, baseline.last or "", baseline.commit, dict(baseline.records)
    )
    save(path, ledger)
    _LATEST.keep(path, replace(baseline, stamp=_stamp(place)))


def recall(place: Place) -> SnapshotBaseline:
    """Return what the ledger says, where it stands for a snapshot that the vault still has; else as `begin`.

    Call it with the lock held.
    """
    stamp = _stamp(place)
    baseline = _LATEST.find(place.records / LEDGER, stamp) if stamp else None
    baseline = baseline or _read_baseline(place, stamp)
    if baseline is None or points_to(place, baseline.last or "") != baseline.commit:
        return begin(place)
    return baseline


def _read_baseline(place: Place, stamp: tuple[int, ...]) -> SnapshotBaseline | None:
    path = place.records / LEDGER
    ledger = load(path)
    if ledger is None:
        return None
    baseline = SnapshotBaseline(ledger.folders, ledger.usual, ledger.last, ledger.commit, ledger.base, stamp=stamp)
    _LATEST.keep(path, baseline)
    return baseline


def _stamp(place: Place) -> tuple[int, ...]:
    """Return what tells the ledger's file from the one that replaces it, whose inode is another."""
    try:
        facts = (place.records / LEDGER).stat()
    except FileNotFoundError:
        return ()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def begin(place: Place) -> SnapshotBaseline:
    """Return what the base commit holds: nothing of it is stored again, and none of its files counts as ignored.

    A mirror that cannot be read only means more work: then everything is stored.
    """
    objects: set[bytes] = set()
    paths: set[bytes] = set()
    with suppress(GitError):
        listing = vault_at(place).run("ls-tree", "-r", "-t", "-z", "--full-tree", place.base_sha)
        for line in listing.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            objects.add(bytes.fromhex(facts.split()[2].decode()))
            paths.add(path)
    return SnapshotBaseline(objects=objects, tracked=frozenset(paths), base=_recorded_base(place))


def _recorded_base(place: Place) -> Mark | None:
    bases = [snapshot for snapshot in list_snapshots(vault_at(place), place.order_id) if snapshot.kind == "base"]
    return Mark(bytes.fromhex(bases[-1].essence), bytes.fromhex(bases[-1].index)) if bases else None
