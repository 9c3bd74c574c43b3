"""The sessions of a home's earlier visits: nothing else is left of them, and a guest sees its own alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.agents.clis.capabilities import Capabilities
from septet.system.guarded_folder import GuardedFolder

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_START_CHARACTERS: Final = 8
_PARTS_OF_DATABASE: Final = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class SessionStore:
    """A folder for each visit that had sessions, by number, with their files by the names that they had."""

    root: Path
    facts: Capabilities
    """Say which files are a session's."""

    def take(self, home: GuardedFolder) -> None:
        """Take all sessions out of the folder in which a CLI has written them.

        Raises:
            OSError: The disk refused.
        """
        names = [name for pattern in self._patterns() for name in home.find(pattern)]
        if not names:
            return
        self.root.mkdir(mode=0o700, exist_ok=True)
        folder = self.root / str(max((int(visit.name) for visit in self._visits()), default=0) + 1)
        folder.mkdir(mode=0o700)
        for name in names:
            home.move(name, GuardedFolder(folder))

    def give(self, session_id: str, home: GuardedFolder) -> None:
        """Put a session's files where the CLI looks for them, and no other's; nothing where there is none.

        Raises:
            OSError: The disk refused.
        """
        if not _ID.fullmatch(session_id):
            return
        for visit in sorted(self._visits(), key=lambda visit: int(visit.name), reverse=True):
            folder = GuardedFolder(visit)
            names = [name for pattern in self._patterns(session_id) for name in folder.find(pattern)]
            if self.facts.session_database and not any(
                folder.contains(name, session_id.encode()) for name in names
            ):
                continue
            for name in names:
                folder.move(name, home)
            if names:
                return

    def _visits(self) -> list[Path]:
        return [path for path in self.root.glob("*") if path.name.isdecimal()]

    def _patterns(self, session_id: str = "") -> Iterator[str]:
        """Yield the patterns of the files of a session, or of all; a database has many in one file."""
        start = session_id[:_START_CHARACTERS] or "*"
        for pattern in filter(None, (self.facts.session_files, *self.facts.session_copies)):
            yield pattern.format(id=session_id or "*", start=start)
        if self.facts.session_database:
            yield from (f"{self.facts.session_database}{part}" for part in _PARTS_OF_DATABASE)
