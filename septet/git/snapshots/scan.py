"""A scan of a worktree, compared with the last snapshot: the changed names, and a check of their size."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from septet.errors import GitError, SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.baseline import SnapshotBaseline, recall
from septet.git.vault.contents import FOLDER
from septet.git.vault.ledger import Record
from septet.git.vault.pack import object_id
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, Figures, Survey, join, look_at, parent
from septet.git.worktree.changes import shown_path
from septet.git.worktree.inside import read_inside
from septet.system.durable import close_after
from septet.system.locks import hold_lock

_LIMIT_BYTES: Final = 64 * 1024 * 1024
_EXECUTABLE: Final = 0o100


@dataclass(frozen=True, slots=True)
class WorktreeScan:
    """The result of one scan of a worktree."""

    survey: Survey
    past: SnapshotBaseline
    """The baseline before the scan."""

    @property
    def since(self) -> str:
        """The commit of the last snapshot; empty if there is none."""
        return self.past.commit

    @property
    def touched(self) -> frozenset[bytes]:
        """Names outside every `.git` whose figures differ from the last snapshot's; the content may be equal."""
        return frozenset(
            join(path, name)
            for path, names in _changed_names(self.survey, self.past)
            for name in names
            if GIT_FOLDER not in join(path, name).split(b"/")
        )


def scan(place: Place, *, ignored_limit_bytes: int) -> WorktreeScan:
    """Scan the worktree once.

    Args:
        place: The place of the workspace and its vault.
        ignored_limit_bytes: The bytes on disk that all ignored files together may take, as for a snapshot.

    Raises:
        SnapshotError: The worktree or the ledger cannot be read, or more was added than the limit allows.
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
    """Refuse a worktree with more new bytes since the last snapshot than git may read; holes in files count too.

    Raises:
        SnapshotError: The limit is exceeded; the message names the largest file.
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
    """Return the folders that differ from their records, unpacked."""
    return {
        path: look.entries()
        for path, look in survey.looks.items()
        if (record := records.get(path)) is None or record.look != look
    }


def _changed_names(survey: Survey, past: SnapshotBaseline) -> Iterator[tuple[bytes, set[bytes]]]:
    """Yield the folders that differ, each with its changed names."""
    for path, now in differing(survey, past.records).items():
        record = past.records.get(path)
        before = record.look.entries() if record is not None else {}
        yield path, {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}


def really_changed(place: Place, scan: WorktreeScan) -> list[bytes]:
    """Return the names outside `.git` whose content differs from the last snapshot, sorted."""
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
    content = read_inside(place.worktree, os.fsdecode(path), _LIMIT_BYTES)
    is_executable = bool(entry.mode & _EXECUTABLE) == bool(now.mode & _EXECUTABLE)
    return content is not None and is_executable and object_id("blob", content) == entry.sha
