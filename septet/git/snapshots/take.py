"""Take a snapshot: list the worktree, store what changed, and return after it is synced to disk.

No git command uses the agent's repository, so its config, filters, hooks and index have no effect. A snapshot has
ignored files too, up to a limit.
"""

import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from septet.errors import GitError, SnapshotError, WorkspaceError
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.snapshots.scan import (
    SnapshotBaseline,
    WorktreeScan,
    begin,
    differing,
    recall,
    refuse_too_large,
    write_baseline,
)
from septet.git.vault.contents import CLOCK_STEP_NS, Builder, usual_bits
from septet.git.vault.facts import (
    FILE,
    FOLDER,
    LedgerEntry,
    LeftOut,
    Mark,
    Record,
    Snapshot,
    SnapshotKind,
    SnapshotOptions,
    shorten,
)
from septet.git.vault.layout import compose
from septet.git.vault.outside import Scene, Sorting, sort
from septet.git.vault.pack import Pack, commit_content, object_id
from septet.git.vault.survey import GIT_FOLDER, OPEN_FOLDER, OVER_LIMIT, Survey, join, look_again, look_at
from septet.git.vault.vault import next_name, publish
from septet.git.worktree.dot_git import read_head
from septet.git.worktree.view import shown_path
from septet.system.durable import close_after, hold_lock
from septet.system.text import timestamp

_HEADS: Final = b".git/refs/heads"
_REWRITTEN: Final = frozenset({
    b"HEAD", b"index", b"config", b"refs", b"logs", b"COMMIT_EDITMSG", b"FETCH_HEAD", b"ORIG_HEAD",
})  # fmt: skip
"""The names in `.git` that git rewrites without a change of work; HEAD and branches are compared by commit."""


def seed(place: Place, *, ignored_limit_bytes: int) -> Snapshot:
    """Take the first snapshot, after the checkout and before any agent.

    The first snapshot reads every file; later snapshots read only changed files, and are compared with the first.

    Raises:
        SnapshotError: The snapshot could not be taken.
    """
    # The next snapshot would read files again that are as young as one tick of the clock.
    time.sleep(CLOCK_STEP_NS / 1e9)
    options = SnapshotOptions("the base commit, checked out", ignored_limit_bytes)
    snapshot = take(place, "base", options)
    if snapshot is None:  # only rescues and repetitions can be superfluous
        raise AssertionError
    return snapshot


def take(
    place: Place, kind: SnapshotKind, options: SnapshotOptions, last_scan: WorktreeScan | None = None
) -> Snapshot | None:
    """Take a snapshot of the workspace, and return it after it is on disk; `None` if none is needed.

    Args:
        kind: Without changes since the base commit, a checkpoint is still taken, but no rescue.
        last_scan: A scan of the worktree after which only Septet has written, and only below `.git`. With this
            scan, only `.git` is scanned again.

    Raises:
        SnapshotError: The snapshot could not be taken; the workspace and the earlier snapshots are unchanged.
    """
    try:
        with close_after(os.open(place.worktree, OPEN_FOLDER)) as root, hold_lock(place.records / "snapshot.lock"):
            return _Taking(place, kind, options, last_scan, root).snapshot()
    except (OSError, GitError) as error:
        message = f"No snapshot of {place.worktree} could be taken: {error}."
        remedy = f"Nothing was removed. Make sure that {place.vault} exists and has room, then try again."
        raise SnapshotError(message, remedy=remedy) from error


@dataclass(frozen=True, slots=True)
class _Taking:
    """Takes one snapshot of a workspace, whose root is open as a descriptor."""

    place: Place
    kind: SnapshotKind
    options: SnapshotOptions
    last_scan: WorktreeScan | None
    root: int

    def snapshot(self) -> Snapshot | None:
        """Take the snapshot; return `None` if none is needed."""
        place, options, root = self.place, self.options, self.root
        past = begin(place) if self.kind == "base" else recall(place)
        scene, sorting = self._scan(past)
        usual = past.usual if past.usual is not None else usual_bits(scene.fresh)
        with Pack(place.vault, past.objects) as pack:
            most = 0 if self.kind == "base" else place.file_limit_bytes
            records = Builder(root, scene, sorting, pack, past.objects, usual, _clock_ns(place), most).build()
            content = compose(pack, records, usual, os.fstat(root).st_mode).hex()
            mark = mark_of(place, records)
            if self.kind == "rescue" and past.base is not None and is_base(place, mark, past.base):
                return None
            if options.equal_to is not None and options.equal_to.content == content:
                return None
            snapshot = Snapshot(
                name=next_name(place, self.kind, past.last),
                content=content,
                tree=records[b""].tree.hex(),
                index=mark.index.hex(),
                essence=mark.essence.hex(),
                kind=self.kind,
                reason=options.reason.encode(errors="replace").decode(),
                step=options.step,
                taken_at=timestamp(datetime.now(UTC)),
                base_sha=place.base_sha,
                size_bytes=sum(record.size for record in records.values()),
                left_out=_left_out(records),
            )
            # The ref holds the name, and the commit holds the content.
            message = msgspec.structs.replace(snapshot, name="", content="").message()
            commit = pack.add("commit", commit_content(content, (), message)).hex()
            pack.publish()
        publish(place, snapshot.name, commit)
        base = mark if self.kind == "base" else past.base
        write_baseline(place, SnapshotBaseline(records, usual, snapshot.name, commit, base))
        return msgspec.structs.replace(snapshot, commit=commit)

    def _scan(self, past: SnapshotBaseline) -> tuple[Scene, Sorting]:
        """Scan the worktree without large ignored folders; if one of them must be stored now, scan everything."""
        place, root = self.place, self.root
        limit = self.options.ignored_limit_bytes
        vault = Git(place.vault, place.worktree, place.env)
        known = _see_git_again(self.last_scan, past, root)
        for heavy in (past.heavy(), frozenset[bytes]()):
            survey = known or look_at(root, heavy, limit)
            known = None
            refuse_too_large(place, survey, past)
            scene = Scene(survey, past.records, differing(survey, past.records), past.tracked)
            sorting = sort(scene, vault, limit)
            if all(path in sorting.left_out for path, reason in survey.closed.items() if reason == OVER_LIMIT):
                break
        return scene, sorting


def _see_git_again(last_scan: WorktreeScan | None, past: SnapshotBaseline, root: int) -> Survey | None:
    """Return the last scan's list of files with the present `.git`; `None` if everything must be scanned."""
    if last_scan is None or last_scan.since != past.commit or GIT_FOLDER not in last_scan.survey.looks:
        return None
    survey = look_again(root, last_scan.survey, os.fsdecode(GIT_FOLDER))
    return survey if GIT_FOLDER in survey.looks else None


def _left_out(records: Mapping[bytes, Record]) -> tuple[LeftOut, ...]:
    return shorten(
        LeftOut(shown_path(join(path, item.name)), item.reason, item.size)
        for path, record in sorted(records.items())
        for item in record.missing
    )


def _clock_ns(place: Place) -> int:
    """Return the present time of the file system's clock."""
    stamp = place.records / "clock"
    stamp.touch()
    return stamp.stat().st_mtime_ns


def mark_of(place: Place, records: Mapping[bytes, Record]) -> Mark:
    """Return the digests of a worktree; `records` are those of the new snapshot, by folder.

    The digest `essence` covers files and modes, paths that were left out, the commits of HEAD and branches, and
    all other work in `.git`, such as a stash, a dropped commit or an unfinished merge.
    """
    within_git = {
        path: record for path, record in records.items() if path == GIT_FOLDER or path.startswith(b".git/")
    }
    files = {path: record for path, record in records.items() if path not in within_git}
    folder = _entries(within_git, GIT_FOLDER)
    parts = (
        records[b""].tree,
        [
            (path, item.name, item.entry.mode, item.entry.sha)
            for path, record in sorted(files.items())
            for item in record.outside
            if join(path, item.name) != GIT_FOLDER
        ],
        [
            (path, record.odd, record.missing)
            for path, record in sorted(files.items())
            if record.odd or record.missing
        ],
        _head(place),
        sorted(_moved_branches(within_git, place)),
        [(name, entry.sha) for name, entry in sorted(folder.items()) if name not in _REWRITTEN],
        [
            (name, entry.sha)
            for name, entry in sorted(_entries(within_git, b".git/refs").items())
            if name != b"heads"
        ],
    )
    essence = hashlib.sha256(msgspec.msgpack.encode(parts)).digest()
    index = folder.get(b"index")
    return Mark(essence, index.sha if index is not None and index.mode == FILE else b"")


def is_base(place: Place, now: Mark, base: Mark) -> bool:
    """Return whether nothing changed since the base commit; an index with equal entries counts as unchanged."""
    if now.essence != base.essence:
        return False
    if now.index == base.index:
        return True
    index = Git(place.vault, place.worktree, place.env, index=place.worktree / ".git" / "index")
    question = ("diff-index", "--cached", "--quiet", "--ignore-submodules=none", place.base_sha)
    with suppress(GitError):
        return bool(now.index) and index.try_run(*question).exit_code == 0
    return False


def _entries(records: Mapping[bytes, Record], path: bytes) -> dict[bytes, LedgerEntry]:
    return records[path].entries() if path in records else {}


def _moved_branches(records: Mapping[bytes, Record], place: Place) -> set[bytes]:
    """Return the blob ids of the branch files that name another commit than the base commit."""
    at_base = object_id("blob", f"{place.base_sha}\n".encode())
    heads = (record for path, record in records.items() if path == _HEADS or path.startswith(_HEADS + b"/"))
    files = {entry.sha for record in heads for entry in record.entries().values() if entry.mode != FOLDER}
    return files - {at_base}


def _head(place: Place) -> str:
    """Return HEAD's commit; empty if there is none."""
    try:
        return read_head(place.worktree / ".git").sha
    except WorkspaceError:
        return ""
