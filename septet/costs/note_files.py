"""Notes on disk about the costs of turns, kept until they are reported to their project's history."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from septet.contracts.costs import CostNote
from septet.system.durable import write_durably

_NEW: Final = ".json"
_TAKEN: Final = ".taken"


@dataclass(frozen=True, slots=True)
class NoteFiles:
    """The notes of one host: a file for each turn; a later note replaces it."""

    root: Path

    @property
    def lock(self) -> Path:
        """The path of the lock for the process that reports the notes."""
        return self.root / "lock"

    @property
    def _due(self) -> Path:
        """A file that exists once a work order is completed; it saves reading the notes."""
        return self.root / "due"

    def note(self, note: CostNote) -> None:
        """Write a note about what a turn has used up to now."""
        self.root.mkdir(mode=0o700, exist_ok=True)
        write_durably(self.root / f"{note.key}{_NEW}", note.model_dump_json().encode())
        if note.completes:
            self._due.touch()

    def find(self, key: str) -> CostNote | None:
        """Return a turn's note; `None` if there is none, or it was taken."""
        with suppress(FileNotFoundError):
            return _read(self.root / f"{key}{_NEW}")
        return None

    def is_due(self, oldest: float) -> bool:
        """Return whether to report notes now: a work order was completed, or a note is older than `oldest`.

        `oldest` is a Unix time in seconds, by the clock of the disk.
        """
        if self._due.exists():
            return True
        with suppress(FileNotFoundError), os.scandir(self.root) as notes:
            for note in notes:
                with suppress(FileNotFoundError):  # a note that is replaced during this call is not old
                    is_old = note.name.endswith(_NEW) and note.stat().st_mtime < oldest
                    if is_old or note.name.endswith(_TAKEN):
                        return True
        return False

    def take(self) -> list[tuple[Path, CostNote]]:
        """Take and return all notes, oldest first, also those that a dead process had taken.

        Later notes get new files, even about the same turns.
        """
        self._due.unlink(missing_ok=True)
        for path in sorted(self.root.glob(f"*{_NEW}")):
            path.replace(path.with_suffix(_TAKEN))
        notes = []
        for path in sorted(self.root.glob(f"*{_TAKEN}"), key=lambda path: path.stat().st_mtime_ns):
            if (note := _read(path)) is None:
                path.unlink()
            else:
                notes.append((path, note))
        return notes

    def forget(self, path: Path) -> None:
        """Delete a taken note after it was reported."""
        path.unlink(missing_ok=True)


def _read(path: Path) -> CostNote | None:
    with suppress(ValidationError):
        return CostNote.model_validate_json(path.read_bytes())
    return None
