"""Whether a file that looks otherwise is what the last snapshot holds: a young one is told by its content."""

import os
import stat
from typing import Final

from septet.git.engine.place import Place
from septet.git.snapshots.scan import WorktreeScan
from septet.git.vault.contents import FOLDER
from septet.git.vault.pack import object_id
from septet.git.vault.survey import parent
from septet.git.worktree.inside import read_inside

_LIMIT_BYTES: Final = 64 * 1024 * 1024
_EXECUTABLE: Final = 0o100


def really_changed(place: Place, scan: WorktreeScan) -> list[bytes]:
    """Return the names outside `.git` that are not what the last snapshot holds, sorted."""
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
