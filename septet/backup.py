"""Copy the state directory while workers and agents run, so that all work can continue from the copy.

The copied files must contain everything to which the copy of the server's database refers. The database is
therefore copied first, and the files afterwards. If an agent ends in between, the restored worker reads the
agent's result and does not run the step again. Some files are copied before the database, because a worker deletes
them when their content is in the database. For each work order, the results of agents are copied before the files
that agents wrote, because a result without the files would count as done.
"""

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from septet.agents.runs.lease import ATTEMPTS_FILE, RESTORED
from septet.errors import SeptetError, UsageError
from septet.git.engine.place import RECORDS, mirror_lock, vault_lock
from septet.state import StateDir
from septet.system.durable import close_after, hold_lock

_PASSING: Final = frozenset({"server.json", "health.json", "up.lock", "runner", "removed", "scratch"})
"""The files that only running processes need, which a backup leaves out."""
_TOLD: Final = ("held", "costs", "tokens")
"""The folders whose files a worker deletes when their content is in the server's database."""
_REPOSITORIES: Final = ("mirrors", "vaults")
_BY_ORDER: Final = ("runs", "homes", "workspaces")
"""The folders in the order of copying: agents' results, then their sessions, then the files that they wrote."""
_OWN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""The flags for opening a folder of Septet; they follow a link, such as that of a container's state directory."""
_FOLDER: Final = _OWN_FOLDER | os.O_NOFOLLOW
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BackupError(SeptetError):
    """The backup could not be made."""

    default_remedy = "Nothing was changed. Remove the incomplete backup, and try again."


@dataclass
class Backup:
    """What a backup contains, and what it lacks."""

    folder: Path
    has_database: bool = False
    """Whether the backup contains the embedded server's database; a shared server's database needs a separate
    backup."""
    places: list[str] = field(default_factory=list)
    """The ids of the copied work orders and lanes."""
    changing: list[str] = field(default_factory=list)
    """The ids of work orders and lanes that Septet changed during every try; after a restore, a step of such a
    work order may run again."""
    left_out: list[str] = field(default_factory=list)
    """The paths, relative to the state directory, of files that this user cannot read."""
    size_bytes: int = 0


def back_up(state: StateDir, folder: Path) -> Backup:
    """Copy the state directory into a new folder, with the embedded server's database; return what was copied.

    To restore the backup, copy or move the folder (`cp -a`, `mv`) to the path of the state directory. After an
    error, the incomplete copy is at `folder` with `.unfinished` added to the name.

    Raises:
        UsageError: The folder exists, or is in the state directory, or there is no state directory.
        BackupError: The database cannot be copied or is damaged, or the host id cannot be copied.
        OSError: A file could not be read or written.
    """
    draft = folder.with_name(f"{folder.name}.unfinished")
    _check(state, folder, draft)
    backup = Backup(folder)
    copier = _Copier(state.root, draft, backup)
    draft.mkdir(mode=0o700, parents=True)
    for name in _TOLD:
        copier.copy(name)
    backup.has_database = _copy_database(state.database, draft / state.database.name)
    folders = (*(state.root / name for name in _BY_ORDER), *state.vaults.glob(f"*.git/{RECORDS}"))
    there = (path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_dir())
    for place_id in sorted({path.name for path in there}):
        backup.places.append(place_id)
        if not copier.copy_place(state, place_id):
            backup.changing.append(place_id)
    for repository in (path for name in _REPOSITORIES for path in sorted((state.root / name).glob("*.git"))):
        lock = mirror_lock if repository.parent == state.mirrors else vault_lock
        with hold_lock(lock(repository)):  # git joins no packs while they are read
            copier.copy(f"{repository.parent.name}/{repository.name}")
    for name in sorted(path.name for path in state.root.iterdir()):
        if name not in _PASSING and not name.startswith(state.database.name):
            copier.copy(name)
    if not (draft / "host-id").is_file():
        raise BackupError(f"{state.root / 'host-id'} could not be copied: it would be another host.")
    os.sync()
    draft.rename(folder)
    return backup


def _check(state: StateDir, folder: Path, draft: Path) -> None:
    if not (state.root / "host-id").is_file():
        raise UsageError(f"{state.root} is not a state directory.", remedy="Set SEPTET_STATE_DIR to the worker's.")
    if folder.resolve().is_relative_to(state.root.resolve()):
        raise UsageError(f"{folder} is in the state directory.", remedy="Name a folder elsewhere.")
    for path in (folder, draft):
        if os.path.lexists(path):
            raise UsageError(f"{path} is there already.", remedy="Name a new folder, or move that one away.")


def _copy_database(database: Path, copy: Path) -> bool:
    """Copy a database as it is at one moment, even while the server writes; return whether a database exists."""
    if not database.exists():
        return False
    try:
        with (
            closing(sqlite3.connect(database, timeout=60.0)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            (verdict,) = target.execute("PRAGMA quick_check").fetchone()
    except sqlite3.Error as error:
        raise BackupError(f"{database} could not be copied: {error}.") from error
    if verdict != "ok":
        raise BackupError(f"{database} is damaged: {verdict}.", remedy="Restore an earlier backup.")
    copy.chmod(0o600)
    return True


@dataclass(frozen=True)
class _Copier:
    """Copies files from `root` to `target`; a file that `target` has already is not copied again."""

    root: Path
    target: Path
    backup: Backup

    def copy_place(self, state: StateDir, place_id: str) -> bool:
        """Copy a work order's files, in a few tries; return whether Septet changed nothing during the last try."""
        found = state.vaults.glob(f"*.git/{RECORDS}/{place_id}")
        records = [path.relative_to(self.root).as_posix() for path in found]
        *before_files, files = [f"{name}/{place_id}" for name in _BY_ORDER]
        marked = [*before_files, *records]
        for tries_left in reversed(range(5)):
            marks = self._marks(marked)
            for name in (*marked, files):
                self.copy(name)
            self._forget_attempts(self.target / "runs" / place_id / ATTEMPTS_FILE)
            if self._marks(marked) == marks:
                return True
            if tries_left:
                for name in (*marked, files):
                    shutil.rmtree(self.target / name, ignore_errors=True)
                time.sleep(0.2)
        return False

    def copy(self, name: str) -> None:
        """Copy a file or a folder; `name` is its path relative to the root."""
        path = self.root / name
        (self.target / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._noting(name), close_after(os.open(path.parent, _OWN_FOLDER)) as folder:
            self._copy_entry(folder, path.name, self.target / name, name)

    def _copy_entry(self, folder: int, entry: str, target: Path, name: str) -> None:
        facts = os.stat(entry, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            with close_after(os.open(entry, _FOLDER, dir_fd=folder)) as inner:
                target.mkdir(mode=0o700, exist_ok=True)
                for child in sorted(os.listdir(inner), key=_refs_first):  # noqa: PTH208 -- by its descriptor
                    below = f"{name}/{child}"
                    with self._noting(below):
                        if not _is_place(below) or not (self.root / below).is_dir():
                            self._copy_entry(inner, child, target / child, below)
        elif os.path.lexists(target):
            return
        elif stat.S_ISLNK(facts.st_mode):
            target.symlink_to(os.readlink(entry, dir_fd=folder))
        elif stat.S_ISREG(facts.st_mode):
            with os.fdopen(os.open(entry, _FILE, dir_fd=folder), "rb") as source, target.open("xb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
                self.backup.size_bytes += copy.tell()
        else:
            return  # sockets and pipes belong to processes
        _copy_facts(target, facts)

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """During the block, ignore a missing file, and record a file that this user cannot read."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            pass
        except PermissionError:
            self.backup.left_out.append(name)

    def _marks(self, names: list[str]) -> frozenset[tuple[str, int]]:
        """Return values that change when Septet begins or ends work, but not when an agent writes."""
        marks: set[tuple[str, int]] = set()
        for name in names:
            for path in (self.root / name).glob("*"):
                with suppress(OSError):
                    marks.add((str(path), path.lstat().st_mtime_ns if path.is_file() else 0))
                    marks.update((str(inner), 0) for inner in path.glob("*") if name.startswith("runs/"))
        return frozenset(marks)

    def _forget_attempts(self, attempts: Path) -> None:
        """Mark the attempts in the copy as restored; otherwise they could lead to refusals of later attempts.

        The restored server numbers attempts from its own copy, which may be older.
        """
        if attempts.exists():
            lines = [line for line in attempts.read_bytes().splitlines() if line.endswith(b"}")]
            attempts.write_bytes(b"".join(b"\n%b%b}" % (RESTORED, line) for line in lines))


def _is_place(name: str) -> bool:
    """Return whether a folder belongs to one work order; only `copy_place` copies such a folder."""
    parts = name.split("/")
    return (len(parts) == 2 and parts[0] in _BY_ORDER) or (len(parts) == 4 and parts[2] == RECORDS)  # noqa: PLR2004


def _refs_first(name: str) -> tuple[bool, bool, str]:
    """Return a sort key by which refs come first, then objects, then packs: git moves objects into packs."""
    return name == "objects", name == "pack", name


def _copy_facts(target: Path, facts: os.stat_result) -> None:
    with suppress(PermissionError):
        os.chown(target, facts.st_uid, facts.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(facts.st_mode):
        target.chmod(stat.S_IMODE(facts.st_mode))
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns), follow_symlinks=False)
