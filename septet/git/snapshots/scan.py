"""Scan a worktree, and compare it with the last snapshot or the base commit."""

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from septet.errors import GitError, SnapshotError
from septet.git.engine.place import Place
from septet.git.vault.facts import FOLDER, VERSION, EntryKind, Ledger, Mark, Record, load, save
from septet.git.vault.pack import object_id
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, Figures, Survey, join, look_at, parent
from septet.git.vault.vault import list_snapshots, points_to, vault_at
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after, hold_lock

LEDGER: Final = "ledger"
_KEPT: Final = 16
_KEPT_BYTES: Final = 4 << 20
"""The most bytes of a ledger that is cached in memory."""


@dataclass(frozen=True, slots=True)
class SnapshotBaseline:
    """What is known from the last snapshot, so that the next one need read only what changed."""

    records: Mapping[bytes, Record] = field(default_factory=dict)
    usual: Mapping[int, int] | None = None
    """By git's mode, the permission bits that the records leave out."""
    last: str | None = None
    """The latest snapshot's name."""
    commit: str = ""
    """The latest snapshot's commit, if `records` is about it."""
    base: Mark | None = None
    """The digests of the workspace right after checkout."""
    objects: set[bytes] = field(default_factory=set)
    """The ids of objects that the vault already has."""
    tracked: frozenset[bytes] = frozenset()
    """The files and folders of the base commit; empty if `records` has them already."""
    stamp: tuple[int, ...] = ()
    """The inode, time and size of the ledger's file; empty if there was no ledger."""

    def heavy(self) -> frozenset[bytes]:
        """Return the ignored folders that the last snapshot left out because they exceed the limit."""
        return frozenset(
            join(path, item.name)
            for path, record in self.records.items()
            for item in record.outside
            if item.entry.kind is EntryKind.IGNORED and item.entry.mode == FOLDER and not item.entry.sha
        )


class _Latest:
    """Caches the baselines that this process used last."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._baselines: OrderedDict[Path, SnapshotBaseline] = OrderedDict()

    def keep(self, path: Path, baseline: SnapshotBaseline) -> None:
        """Cache the baseline of the ledger at `path`; drop the oldest one of a full cache."""
        if not baseline.stamp or baseline.stamp[-1] > _KEPT_BYTES:
            return
        with self._guard:
            self._baselines[path] = baseline
            self._baselines.move_to_end(path)
            if len(self._baselines) > _KEPT:
                self._baselines.popitem(last=False)

    def find(self, path: Path, stamp: tuple[int, ...]) -> SnapshotBaseline | None:
        """Return the cached baseline of the ledger at `path`; `None` if the file has changed or is not cached."""
        with self._guard:
            baseline = self._baselines.get(path)
        # `objects` belongs to one snapshot.
        return replace(baseline, objects=set()) if baseline is not None and baseline.stamp == stamp else None


_LATEST: Final = _Latest()


def write_baseline(place: Place, baseline: SnapshotBaseline) -> None:
    """Write a baseline to the ledger. The caller holds `snapshot.lock`."""
    path = place.records / LEDGER
    names = (baseline.last or "", baseline.commit)
    save(path, Ledger(VERSION, baseline.usual or {}, baseline.base, *names, dict(baseline.records)))
    _LATEST.keep(path, replace(baseline, stamp=_stamp(place)))


def recall(place: Place) -> SnapshotBaseline:
    """Return the ledger's baseline; if the vault lacks the baseline's snapshot, return the result of `begin`.

    The caller holds `snapshot.lock`.
    """
    path, stamp = place.records / LEDGER, _stamp(place)
    baseline = _LATEST.find(path, stamp) if stamp else None
    if baseline is None and (ledger := load(path)) is not None:
        of_ledger = (ledger.folders, ledger.usual, ledger.last, ledger.commit, ledger.base)
        baseline = SnapshotBaseline(*of_ledger, stamp=stamp)
        _LATEST.keep(path, baseline)
    if baseline is None or points_to(place, baseline.last or "") != baseline.commit:
        return begin(place)
    return baseline


def _stamp(place: Place) -> tuple[int, ...]:
    """Return the inode, time and size of the ledger's file; empty if it is missing."""
    try:
        facts = (place.records / LEDGER).stat()
    except FileNotFoundError:
        return ()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def begin(place: Place) -> SnapshotBaseline:
    """Return the first baseline, which knows the objects and files of the base commit.

    If the mirror cannot be read, the next snapshot stores all files.
    """
    vault, objects, paths = vault_at(place), set[bytes](), set[bytes]()
    with suppress(GitError):
        listing = vault.run("ls-tree", "-r", "-t", "-z", "--full-tree", place.base_sha)
        for line in listing.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            objects.add(bytes.fromhex(facts.split()[2].decode()))
            paths.add(path)
    bases = [snapshot for snapshot in list_snapshots(vault, place.order_id) if snapshot.kind == "base"]
    base = Mark(bytes.fromhex(bases[-1].essence), bytes.fromhex(bases[-1].index)) if bases else None
    return SnapshotBaseline(objects=objects, tracked=frozenset(paths), base=base)


@dataclass(frozen=True, slots=True)
class WorktreeScan:
    """The result of one scan of a worktree."""

    survey: Survey
    past: SnapshotBaseline
    """The baseline with which the worktree was compared."""

    @property
    def since(self) -> str:
        """The commit of the last snapshot; empty if there is none."""
        return self.past.commit

    @property
    def touched(self) -> frozenset[bytes]:
        """The paths outside of every `.git` whose `lstat` numbers changed since the last snapshot."""
        return frozenset(
            join(path, name)
            for path, names in _changed_names(self.survey, self.past)
            for name in names
            if GIT_FOLDER not in join(path, name).split(b"/")
        )


def scan(place: Place, *, ignored_limit_bytes: int) -> WorktreeScan:
    """Scan the worktree once; `ignored_limit_bytes` must be the limit of the worktree's snapshots.

    Raises:
        SnapshotError: The worktree or the ledger cannot be read, or more was added than the tree limit allows.
    """
    try:
        with close_after(os.open(place.worktree, OPEN_FOLDER)) as root:
            with hold_lock(place.records / "snapshot.lock"):
                past = recall(place)
            survey = look_at(root, past.heavy(), ignored_limit_bytes)
    except (OSError, GitError) as error:
        raise SnapshotError(
            f"{place.worktree} cannot be checked: {error}.",
            remedy=f"Nothing was removed. Make sure that it and {place.vault} exist, then try again.",
        ) from error
    refuse_too_large(place, survey, past)
    return WorktreeScan(survey, past)


def refuse_too_large(place: Place, survey: Survey, past: SnapshotBaseline) -> None:
    """Refuse a worktree to which too many bytes were added since the last snapshot; holes in files count as bytes.

    Raises:
        SnapshotError: The tree limit is exceeded; the message names the largest file.
    """
    if not (place.tree_limit_bytes and past.commit):
        return
    added, largest = 0, (0, b"")
    for path, names in _changed_names(survey, past):
        now = survey.looks[path].entries()
        for name in names & now.keys():
            added += now[name].size
            largest = max(largest, (now[name].size, join(path, name)))
    if added > place.tree_limit_bytes:
        raise SnapshotError(
            f"{place.worktree}: tree limit of {place.tree_limit_bytes >> 20} MiB reached; the largest of the new "
            f"files is {shown_path(largest[1])}, {largest[0] >> 20} MiB.",
            remedy="Nothing was removed. Remove from that folder what is too large, or start the "
            "worker (`septet up`) again with a larger SEPTET_TREE_LIMIT_MIB; then run `septet retry`.",
        )


def differing(survey: Survey, records: Mapping[bytes, Record]) -> dict[bytes, dict[bytes, Figures]]:
    """Return the folders that differ from their records, each with the names in it and their `lstat` numbers."""
    return {
        path: look.entries()
        for path, look in survey.looks.items()
        if (record := records.get(path)) is None or record.look != look
    }


def _changed_names(survey: Survey, past: SnapshotBaseline) -> Iterator[tuple[bytes, set[bytes]]]:
    """Yield each folder that differs from its record, with the names of its added, deleted and changed entries."""
    for path, now in differing(survey, past.records).items():
        record = past.records.get(path)
        before = record.look.entries() if record is not None else {}
        yield path, {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}


def really_changed(place: Place, scan: WorktreeScan) -> list[bytes]:
    """Return the sorted paths outside `.git` whose content differs from the last snapshot."""
    return sorted(path for path in scan.touched if not _is_same(place, scan, path))


def _is_same(place: Place, scan: WorktreeScan, path: bytes) -> bool:
    record, name = scan.past.records.get(parent(path)), path.rpartition(b"/")[2]
    if record is None:
        return False
    entry = record.entries().get(name) or next((each.entry for each in record.outside if each.name == name), None)
    now = scan.survey.looks[parent(path)].entries().get(name) if parent(path) in scan.survey.looks else None
    if entry is None or now is None:
        return False
    if stat.S_ISDIR(now.mode):
        return entry.mode == FOLDER
    content = read_inside(place.worktree, os.fsdecode(path), limit_bytes=64 << 20)
    is_same_mode = (entry.mode ^ now.mode) & stat.S_IXUSR == 0
    return content is not None and is_same_mode and object_id("blob", content) == entry.sha
