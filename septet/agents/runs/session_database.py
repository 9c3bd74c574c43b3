"""Sessions that a CLI keeps in a database, as opencode does: a copy of it with one session and nothing else."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

_LIMIT_BYTES: Final = 1 << 30
_LOCK_SECONDS: Final = 5.0
_WITHOUT_KEYS: Final = ("account", "account_state", "control_account", "credential", "permission", "session_share")
"""Tables that hold what is the user's alone."""


def reduced_database(path: Path, session_id: str) -> bytes | None:
    """Return a copy of a user's database in which one session is left; `None` where it has none of that id.

    A database that is built otherwise than is known here is left alone: its session begins anew.
    """
    if not path.is_file() or path.stat().st_size > _LIMIT_BYTES:
        return None
    with tempfile.TemporaryDirectory(prefix="septet-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=_LOCK_SECONDS)) as source:
                if source.execute("SELECT 1 FROM session WHERE id = ?", (session_id,)).fetchone() is None:
                    return None
                with closing(sqlite3.connect(copy, isolation_level=None)) as target:
                    source.backup(target)
                    _reduce(target, session_id)
        except sqlite3.Error:
            return None
        return copy.read_bytes()


def _reduce(database: sqlite3.Connection, session_id: str) -> None:
    """Delete all rows of other sessions, and what says who the user is; the file keeps nothing of them."""
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
