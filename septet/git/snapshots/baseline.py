"""The known state of a workspace before a scan: its ledger, or else the content of the base commit."""

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
"""The size of the longest ledger that is kept in memory."""


@dataclass(frozen=True, slots=True)
class SnapshotBaseline:
    """Facts of the last snapshot that the next snapshot need not find again."""

    records: Mapping[bytes, Record] = field(default_factory=dict)
    usual: Mapping[int, int] | None = None
    """git's mode → permission bits, as the ledger's records expect them."""
    last: str | None = None
    """The latest snapshot's name."""
    commit: str = ""
    """The latest snapshot's commit, if `records` describes it."""
    base: Mark | None = None
    """The mark of the workspace right after checkout."""
    objects: set[bytes] = field(default_factory=set)
    """Ids of objects that the vault already has."""
    tracked: frozenset[bytes] = frozenset()
    """Files and folders of the base commit; empty if `records` has them."""
    stamp: tuple[int, ...] = ()
    """The identity of the ledger's file; empty if nothing is from the ledger."""

    def heavy(self) -> frozenset[bytes]:
        """Return the ignored folders that were over the limit."""
        return frozenset(
            join(path, item.name)
            for path, record in self.records.items()
            for item in record.outside
            if item.entry.kind is EntryKind.IGNORED and item.entry.mode == FOLDER and not item.entry.sha
        )


class _Latest:
    """The baselines that this process wrote or read last, whose ledgers need not be read again."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._baselines: OrderedDict[Path, SnapshotBaseline] = OrderedDict()

    def keep(self, path: Path, baseline: SnapshotBaseline) -> None:
        """Keep a ledger's baseline, and drop the baseline that was kept first."""
        if not baseline.stamp or baseline.stamp[-1] > _KEPT_BYTES:
            return
        with self._guard:
            self._baselines[path] = baseline
            self._baselines.move_to_end(path)
            if len(self._baselines) > _KEPT:
                self._baselines.popitem(last=False)

    def find(self, path: Path, stamp: tuple[int, ...]) -> SnapshotBaseline | None:
        """Return the baseline of the ledger with this stamp; `None` if the baseline is not in memory."""
        with self._guard:
            baseline = self._baselines.get(path)
        # `objects` belongs to one snapshot.
        return replace(baseline, objects=set()) if baseline is not None and baseline.stamp == stamp else None


_LATEST: Final = _Latest()


def write_baseline(place: Place, baseline: SnapshotBaseline) -> None:
    """Write the latest snapshot's baseline as the ledger. The caller holds the lock."""
    path = place.records / LEDGER
    ledger = new_ledger(
        baseline.usual or {}, baseline.base, baseline.last or "", baseline.commit, dict(baseline.records)
    )
    save(path, ledger)
    _LATEST.keep(path, replace(baseline, stamp=_stamp(place)))


def recall(place: Place) -> SnapshotBaseline:
    """Return the ledger's baseline if the vault still has its snapshot; otherwise the result of `begin`.

    The caller holds the lock.
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
    """Return the identity of the ledger's file; a file that replaces it has another inode."""
    try:
        facts = (place.records / LEDGER).stat()
    except FileNotFoundError:
        return ()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def begin(place: Place) -> SnapshotBaseline:
    """Return the base commit's content as a baseline: this content is not stored again, and counts as not ignored.

    An unreadable mirror only costs work: the next snapshot stores all files.
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
