"""What a run used, noted beside it: figures of a resumed session add up, and each run is to show its own."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import reduce
from typing import Final

from pydantic import ValidationError

from septet.agents.clis.outcome import NO_USAGE, Outcome
from septet.agents.runs.folders import Run
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire

_FILE: Final = "spent.json"


class Spent(Wire):
    """The usage of one run in its session."""

    session_id: str
    usage: Usage


def note_spent(run: Run, outcome: Outcome) -> None:
    """Note what a run used."""
    if outcome.session_id is not None:
        note = Spent(session_id=outcome.session_id, usage=outcome.usage)
        run.put(_FILE, note.model_dump_json().encode())


def spent_before(runs: Iterable[Run], session_id: str | None) -> Usage:
    """Return what a session used in these runs; one that nobody concluded counts as nothing."""
    return _sum(note.usage for note in _notes(runs) if note.session_id == session_id)


def spent_in(runs: Iterable[Run]) -> Usage:
    """Return what these runs used together, whatever their sessions."""
    return _sum(note.usage for note in _notes(runs))


def read_usage(run: Run) -> Spent | None:
    """Return what was noted of a run; `None` where nobody concluded it."""
    with suppress(FileNotFoundError, ValidationError):
        return Spent.model_validate_json((run.folder / _FILE).read_bytes())
    return None


def _notes(runs: Iterable[Run]) -> Iterator[Spent]:
    return (note for run in runs if (note := read_usage(run)) is not None)


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, NO_USAGE)
