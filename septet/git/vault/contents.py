"""Store a worktree as git objects: read the changed files, and build trees from the lowest folders up."""

import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from septet.git.vault.facts import (
    FILE,
    FOLDER,
    PROGRAM,
    EntryKind,
    LedgerEntry,
    Missing,
    Outside,
    Record,
    pack_entries,
    tree_content,
)
from septet.git.vault.outside import Scene, Sorting
from septet.git.vault.pack import Pack
from septet.git.vault.survey import (
    OVER_FILE_LIMIT,
    OVER_LIMIT,
    Figures,
    blocks,
    disk_usage,
    join,
    open_below,
    pack_look,
    parent,
    unreadable,
)
from septet.system.durable import close_after

CLOCK_STEP_NS: Final = 20_000_000
"""The nanoseconds within which two changes of a file may have the same time; Linux needs at most 10 ms."""
_COARSE_STEP_NS: Final = 2_000_000_000
"""The same for file systems whose times are whole seconds (FAT: two seconds)."""
_SECOND_NS: Final = 1_000_000_000
_SMALL_BYTES: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""The flags to open a file; a link is not followed, and a FIFO is not waited for."""
_UNREADABLE_KINDS: Final[Mapping[int, str]] = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def clock_step_ns(changed_ns: int) -> int:
    """Return for how many nanoseconds after a change a file may change again without a new change time."""
    return _COARSE_STEP_NS if changed_ns % _SECOND_NS == 0 else CLOCK_STEP_NS


@dataclass(slots=True)
class Builder:
    """Stores one worktree as objects in a pack."""

    root: int
    """The descriptor of the worktree's root."""
    scene: Scene
    sorting: Sorting
    pack: Pack
    present: set[bytes]
    """The ids of objects that the vault has already; they are not written again."""
    usual: Mapping[int, int]
    """The usual permission bits for each git mode."""
    now_ns: int
    """The file system's time before the first file is read."""
    file_limit_bytes: int = 0
    """The size in bytes above which a file is left out; 0: no limit."""
    records: dict[bytes, Record] = field(default_factory=dict)

    def build(self) -> dict[bytes, Record]:
        """Store the worktree, and return the record of every folder; only changed folders are read."""
        looks, left_out = self.scene.survey.looks, self.sorting.left_out
        skipped = set[bytes]()  # the folders that are left out, with all folders below
        for path in looks if left_out else ():
            if path in left_out or parent(path) in skipped:
                skipped.add(path)
        touched = self.sorting.resorted | {parent(path) for path in self.scene.survey.closed}
        for path in reversed(looks):
            if path in skipped:
                continue
            old = self.scene.records.get(path)
            if old is not None and path not in self.scene.fresh and path not in touched:
                self.records[path] = old
                continue
            record = self.records[path] = self._folder(path, old)
            if old is None or old.tree != record.tree:
                touched.add(parent(path))
        return self.records

    def _folder(self, path: bytes, old: Record | None) -> Record:
        """Store the changed files of a folder, and return its record."""
        before = old.look.entries() if old is not None else {}
        figures = self.scene.fresh.get(path, before)
        reading = _Reading(self, path, before, old)
        try:
            entries = {name: reading.entry(name, row) for name, row in figures.items()}
        finally:
            reading.close()
        inside = {name: entry for name, entry in entries.items() if entry.sha and entry.kind < EntryKind.IGNORED}
        return Record(
            look=pack_look({name: self._lasting_figures(row, entries[name]) for name, row in figures.items()}),
            packed=pack_entries(entries),
            tree=self.pack.add("tree", tree_content(inside)),
            outside=tuple(
                Outside(name, entry, 0 if entry.mode == FOLDER else blocks(figures[name].size))
                for name, entry in entries.items()
                if entry.kind >= EntryKind.IGNORED
            ),
            odd=tuple(
                (name, bits)
                for name, row in figures.items()
                if entries[name].sha and (bits := self._odd_bits(row)) is not None
            ),
            missing=tuple(reading.missing),
            usage=disk_usage(figures),
            size=sum(figures[name].size for name, entry in entries.items() if entry.sha and entry.mode != FOLDER),
        )

    def _lasting_figures(self, row: Figures, entry: LedgerEntry) -> Figures:
        """Return the `lstat` numbers to record for a name.

        The change time is 0 for a file that changed just now or was not read, so that the next snapshot reads it.
        """
        if stat.S_ISDIR(row.mode):
            return row
        is_old = row.ctime_ns < self.now_ns - clock_step_ns(row.ctime_ns)
        return row if entry.sha and is_old else row._replace(ctime_ns=0)

    def _odd_bits(self, row: Figures) -> int | None:
        """Return a name's permission bits; `None` if they are the usual ones."""
        bits = stat.S_IMODE(row.mode)
        return None if stat.S_ISLNK(row.mode) or bits == self.usual.get(git_mode(row.mode)) else bits


class _Reading:
    """Stores the entries of one folder, which is opened when needed."""

    def __init__(self, builder: Builder, path: bytes, before: Mapping[bytes, Figures], old: Record | None) -> None:
        self._builder = builder
        self._path = path
        self._before = before
        self._old = old.entries() if old is not None else {}
        builder.present.update(entry.sha for entry in self._old.values())
        self._folder: int | None = None
        self.missing: list[Missing] = []

    def close(self) -> None:
        if self._folder is not None:
            os.close(self._folder)

    def entry(self, name: bytes, row: Figures) -> LedgerEntry:
        """Store the content of one name, and return its entry; add the reason of a failure to `missing`."""
        full = join(self._path, name)
        kind = self._kind(full, name)
        sha, reason, size = self._content(full, name, row)
        if reason:
            self.missing.append(Missing(name, reason, size))
        return LedgerEntry(git_mode(row.mode), sha, kind)

    def _kind(self, full: bytes, name: bytes) -> EntryKind:
        scene, sorting = self._builder.scene, self._builder.sorting
        if full in sorting.outside:
            return sorting.outside[full]
        old = self._old.get(name)
        tracked = full in scene.tracked or (old is not None and old.kind is EntryKind.TRACKED)
        return EntryKind.TRACKED if tracked else EntryKind.UNTRACKED

    def _content(self, full: bytes, name: bytes, row: Figures) -> tuple[bytes, str, int]:
        """Store a name's content, and return its object id, or else an empty id with the reason and the size."""
        builder = self._builder
        if full in builder.sorting.left_out:
            return b"", OVER_LIMIT, builder.sorting.left_out[full]
        if full in builder.scene.survey.closed:
            return b"", builder.scene.survey.closed[full], row.size
        if stat.S_ISDIR(row.mode):
            return builder.records[full].tree, "", 0
        if self._before.get(name) == row and (old := self._old[name]).sha:
            return old.sha, "", 0
        if (what := _UNREADABLE_KINDS.get(stat.S_IFMT(row.mode))) is not None:
            return b"", what, 0
        is_over = 0 < builder.file_limit_bytes < row.size and stat.S_ISREG(row.mode)
        is_work = is_over and self._kind(full, name) < EntryKind.IGNORED  # neither ignored nor git's
        return (b"", OVER_FILE_LIMIT, row.size) if is_work else self._read(name, row)

    def _read(self, name: bytes, row: Figures) -> tuple[bytes, str, int]:
        try:
            if self._folder is None:
                self._folder = open_below(self._builder.root, self._path)
            if stat.S_ISLNK(row.mode):
                target = os.readlink(name, dir_fd=self._folder)
                return self._builder.pack.add("blob", target), "", 0
            for _ in range(3):
                sha = _read_file(self._folder, name, self._builder.pack)
                if sha is not None:
                    return sha, "", 0
        except OSError as error:
            return b"", unreadable(error), row.size
        return b"", "changed while it was read", row.size


def _read_file(folder: int, name: bytes, pack: Pack) -> bytes | None:
    """Store a file, and return its object's id; `None` if the file changed meanwhile."""
    with close_after(os.open(name, _READ, dir_fd=folder)) as descriptor:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        if before.st_size <= _SMALL_BYTES:
            content = os.read(descriptor, before.st_size + 1)
            sha = pack.add("blob", content) if len(content) == before.st_size else None
        else:
            sha = pack.add_stream(before.st_size, lambda size: os.read(descriptor, size))
        after = os.fstat(descriptor)
        same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        return sha if same else None


def git_mode(mode: int) -> int:
    """Return git's mode for a file's mode; if git has none, the file's type."""
    if stat.S_ISREG(mode):
        return PROGRAM if mode & stat.S_IXUSR else FILE
    return stat.S_IFMT(mode)


def usual_bits(fresh: Mapping[bytes, Mapping[bytes, Figures]]) -> dict[int, int]:
    """Return the most common permission bits for each git mode; only other bits are recorded.

    Of two equally common values, the higher counts.
    """
    counts = Counter(
        (git_mode(row.mode), stat.S_IMODE(row.mode)) for figures in fresh.values() for row in figures.values()
    )
    ascending = sorted((count, bits, mode) for (mode, bits), count in counts.items())
    return {mode: bits for _, bits, mode in ascending if mode in {FILE, PROGRAM, FOLDER}}
