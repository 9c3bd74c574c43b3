"""Notes on disk about turns with reservations, kept until their use is reported to the accounts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
    """A host's notes about turns with reservations, one file for each workspace; the writer's lock protects it."""

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
