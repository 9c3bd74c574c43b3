"""The files of an agent's session, which Septet copies between folders of a CLI, even to another host.

Such a folder is the user's own, or is in the home of a work order, where guests write.
"""

import io
import re
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine
from septet.agents.clis.own_files import own_folders_by_name
from septet.errors import AgentError
from septet.system.durable import write_atomically
from septet.system.guarded_folder import GuardedFolder


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """A folder with a CLI's sessions: the user's own folder, or a folder in a work order's home."""

    root: Path
    home: Path | None = None
    """The work order's home around the folder: guests write there, and no link below the home is followed. `None`
    for the user's own folder, which may have the user's links."""

    @property
    def _guard(self) -> GuardedFolder | None:
        """The same folder with access that follows no links of guests; `None` for the user's own folder."""
        return None if self.home is None else GuardedFolder(self.home, str(self.root.relative_to(self.home)))

    def find(self, pattern: str) -> list[str]:
        """Return the names of the files that match a pattern; links are left out."""
        if self._guard is not None:
            return self._guard.find(pattern)
        paths = (path for path in self.root.glob(pattern) if path.is_file() and not path.is_symlink())
        return sorted(str(path.relative_to(self.root)) for path in paths)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """Return the content of a file; `None` if the file is missing or larger than the limit."""
        if self._guard is not None:
            return self._guard.read(name, limit_bytes)
        path = self.root / name
        return path.read_bytes() if path.is_file() and path.stat().st_size <= limit_bytes else None

    def changed_at(self, name: str) -> float | None:
        """Return the time of a file's last change, in seconds; `None` for a missing file."""
        if self._guard is not None:
            return self._guard.changed_at(name)
        path = self.root / name
        return path.stat().st_mtime if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and make the folders that lead to it.

        Raises:
            OSError: The disk refused.
        """
        (self.home or self.root).mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._guard is not None:
            self._guard.write(name, content)
            return
        path = self.root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, content)


_DATABASE_LIMIT_BYTES: Final = 1 << 30
_WITHOUT_KEYS: Final = ("account", "account_state", "control_account", "credential", "permission", "session_share")
"""The tables that belong to the user and not to a session; a reduced database has none of their rows."""


def reduced_database(path: Path, session_id: str) -> bytes | None:
    """Copy a user's database, and return the copy reduced to one session; `None` if the session is missing.

    Also return `None` for a database that is too large or has an unknown structure.
    """
    if not path.is_file() or path.stat().st_size > _DATABASE_LIMIT_BYTES:
        return None
    with tempfile.TemporaryDirectory(prefix="septet-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)) as source:
                if source.execute("SELECT 1 FROM session WHERE id = ?", (session_id,)).fetchone() is None:
                    return None
                with closing(sqlite3.connect(copy, isolation_level=None)) as target:
                    source.backup(target)
                    _reduce(target, session_id)
        except sqlite3.Error:
            return None
        return copy.read_bytes()


def _reduce(database: sqlite3.Connection, session_id: str) -> None:
    """Delete the rows of other sessions and the user's own data; leave no trace of these rows in the file."""
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute("PRAGMA secure_delete = ON")
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    database.execute("BEGIN")
    for name in names:
        columns = {row[1] for row in database.execute(f'PRAGMA table_info("{name}")')}
        key = "id" if name == "session" else next((c for c in ("session_id", "aggregate_id") if c in columns), "")
        if name in _WITHOUT_KEYS:
            database.execute(f'DELETE FROM "{name}"')  # noqa: S608 -- the names are the database's own
        elif key:
            database.execute(f'DELETE FROM "{name}" WHERE "{key}" <> ?', (session_id,))  # noqa: S608 -- as above
    database.execute("COMMIT")
    database.execute("VACUUM")


_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LIMIT_BYTES: Final = 64 << 20
"""The size of the largest session that moves to another host; a larger session begins anew on that host."""
_MOVED_LIMIT_BYTES: Final = 512 << 20
"""The size of the largest file that is copied between two homes of one host."""
_START_CHARACTERS: Final = 8
"""The length of the start of an id in some file names."""


def pack_session(
    adapter: Adapter, session_id: str, host: Machine, folder: SessionFolder | None = None
) -> bytes | None:
    """Return a session's files as a compressed archive; `None` if the files are missing or too large.

    Without `folder`, the session is in the user's own folder.

    Raises:
        OSError: The files cannot be read.
    """
    pattern, folder = adapter.capabilities.session_files, folder or user_sessions(adapter, host)
    if not pattern or folder is None or not _ID.fullmatch(session_id):
        return None
    names = folder.find(pattern.format(id=session_id))
    contents = [(name, folder.read(name, _LIMIT_BYTES)) for name in names]
    whole = [(name, content) for name, content in contents if content is not None]
    if not whole or len(whole) < len(names) or sum(len(content) for _, content in whole) > _LIMIT_BYTES:
        return None
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w:gz") as archive:
        for name, content in whole:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            archive.addfile(member, io.BytesIO(content))
    return archive_bytes.getvalue()


def unpack_session(
    adapter: Adapter, archive_bytes: bytes, host: Machine, folder: SessionFolder | None = None
) -> None:
    """Write a session's files from an archive into the CLI's folder, and replace older files of the session.

    Raises:
        AgentError: The archive holds a file that is no session of this CLI.
        OSError: The disk refused.
    """
    folder, pattern = folder or user_sessions(adapter, host), adapter.capabilities.session_files.format(id="*")
    with tarfile.open(fileobj=io.BytesIO(archive_bytes), mode="r:gz") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            file = archive.extractfile(member) if member.isreg() else None
            leads_out = name.is_absolute() or ".." in name.parts
            if file is None or folder is None or leads_out or not name.match(pattern):
                raise AgentError(f"{member.name} is not a session of {adapter.name}.")
            folder.write(str(name), file.read())


def copy_session(adapter: Adapter, session_id: str, source: SessionFolder, target: SessionFolder) -> None:
    """Copy a session's files from `source` to `target`, if `target` lacks them or has older ones.

    Raises:
        OSError: The disk refused.
    """
    facts = adapter.capabilities
    if not _ID.fullmatch(session_id) or not source.root.is_dir():
        return
    patterns = [
        each.format(id=session_id, start=session_id[:_START_CHARACTERS])
        for each in (*filter(None, (facts.session_files,)), *facts.session_copies)
    ]
    for pattern in patterns:
        copy_files(pattern, source, target)
    database = facts.session_database
    # A guest's file is not opened as a database: the guest's session begins anew outside.
    if database and target.home is not None and target.changed_at(database) is None:
        content = reduced_database(source.root / database, session_id)
        if content is not None:
            target.write(database, content)


def copy_files(pattern: str, source: SessionFolder, target: SessionFolder) -> None:
    """Copy files that match a pattern from `source` to `target`, if `target` lacks them or has older ones.

    Raises:
        OSError: The disk refused.
    """
    for name in source.find(pattern):
        written, there = source.changed_at(name), target.changed_at(name)
        if written is not None and (there is None or there < written):
            content = source.read(name, _MOVED_LIMIT_BYTES)
            if content is not None:
                target.write(name, content)


def user_sessions(adapter: Adapter, host: Machine) -> SessionFolder | None:
    """Return the user's own folder with a CLI's sessions; `None` for a CLI without sessions."""
    folders = own_folders_by_name(adapter, host)
    return SessionFolder(next(iter(folders.values()))) if folders else None
