"""Notes on disk about turns, kept until the use of a turn is reported to its accounts and its project."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from septet.contracts.costs import CostNote
from septet.contracts.wire import Wire
from septet.system.durable import read_model, write_durably

_SUFFIX: Final = ".json"


class HeldTurn(Wire):
    """A turn with reservations, and the accounts to which its use must be reported."""

    workflow_id: str
    run_id: str
    activity_id: str
    scopes: tuple[str, ...] = ()
    is_over: bool = False
    """Whether the turn's attempt has ended without a report; the next process that reads the note must report."""

    @property
    def key(self) -> str:
        """The key of the turn in accounts."""
        return turn_key(self.workflow_id, self.run_id, self.activity_id)


class _Notes(Wire):
    turns: tuple[HeldTurn, ...] = ()


def turn_key(workflow_id: str, run_id: str, activity_id: str) -> str:
    """Return the key of a turn in accounts; an activity of a workflow run has one turn."""
    return f"{workflow_id}/{run_id}/{activity_id}"


@dataclass(frozen=True, slots=True)
class HeldTurns:
    """A host's notes about turns with reservations: a file for each workspace, under the writer's lock."""

    root: Path

    def note(self, place_id: str, turn: HeldTurn) -> None:
        """Write a note about a turn; it replaces the turn's earlier note."""
        self._write(place_id, (*self._others(place_id, turn.key), turn))

    def find(self, place_id: str, key: str) -> HeldTurn | None:
        """Return the note of a turn; `None` without a note."""
        return next((turn for turn in self.of(place_id) if turn.key == key), None)

    def forget(self, place_id: str, key: str) -> None:
        """Delete a turn's note, after the report to the accounts."""
        self._write(place_id, self._others(place_id, key))

    def of(self, place_id: str) -> tuple[HeldTurn, ...]:
        """Return a workspace's turns with reservations; empty if the file is missing or unreadable."""
        notes = read_model(self._path(place_id), _Notes) or _Notes()
        return notes.turns

    def places(self) -> Iterator[str]:
        """Yield the ids of the workspaces that have notes."""
        for path in sorted(self.root.glob(f"*{_SUFFIX}")):
            yield path.name.removesuffix(_SUFFIX)

    def _others(self, place_id: str, key: str) -> tuple[HeldTurn, ...]:
        return tuple(turn for turn in self.of(place_id) if turn.key != key)

    def _write(self, place_id: str, turns: tuple[HeldTurn, ...]) -> None:
        if turns:
            write_durably(self._path(place_id), _Notes(turns=turns).model_dump_json().encode())
        else:
            self._path(place_id).unlink(missing_ok=True)

    def _path(self, place_id: str) -> Path:
        return self.root / f"{place_id}{_SUFFIX}"


_TAKEN: Final = ".taken"


@dataclass(frozen=True, slots=True)
class NoteFiles:
    """A host's notes about what turns have used: a file for each turn, which a later note replaces."""

    root: Path

    @property
    def lock(self) -> Path:
        """The path of the lock for the process that reports the notes."""
        return self.root / "lock"

    @property
    def _due(self) -> Path:
        """A file that exists if a work order was completed since the last `take`: the notes are then due."""
        return self.root / "due"

    def note(self, note: CostNote) -> None:
        """Write a note about what a turn has used up to now."""
        self.root.mkdir(mode=0o700, exist_ok=True)
        write_durably(self.root / f"{note.key}{_SUFFIX}", note.model_dump_json().encode())
        if note.completes:
            self._due.touch()

    def find(self, key: str) -> CostNote | None:
        """Return a turn's note; `None` if there is none, or if `take` has taken it."""
        with suppress(FileNotFoundError):
            return _read(self.root / f"{key}{_SUFFIX}")
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
                    is_old = note.name.endswith(_SUFFIX) and note.stat().st_mtime < oldest
                    if is_old or note.name.endswith(_TAKEN):
                        return True
        return False

    def take(self) -> list[tuple[Path, CostNote]]:
        """Take and return all notes, oldest first, also those that a dead process had taken.

        Later notes get new files, even about the same turns.
        """
        self._due.unlink(missing_ok=True)
        for path in sorted(self.root.glob(f"*{_SUFFIX}")):
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
