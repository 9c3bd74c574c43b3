"""What a run used, noted beside it: figures of a resumed session add up, and each run is to show its own."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Final

from septet.agents.outcomes.outcome import NO_USAGE, Outcome
from septet.agents.runs.folders import Run
from septet.agents.runs.records import RunRecord
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.system.durable import read_model

_FILE: Final = "spent.json"


class Spent(Wire):
    """The usage of one run in its session."""

    session_id: str
    """Empty if the stream reported none."""
    usage: Usage
    by_unknown_error: bool = False
    """The run ended by an error of the model API that nobody knows."""


def note_spent(run: Run, outcome: Outcome, *, by_unknown_error: bool = False) -> None:
    """Note what a run used in its session; where an error ended it that nobody knows, also without one."""
    if outcome.session_id is not None or by_unknown_error:
        session_id = outcome.session_id or ""
        note = Spent(session_id=session_id, usage=outcome.usage, by_unknown_error=by_unknown_error)
        run.put(_FILE, note.model_dump_json().encode())


def spent_before(runs: Iterable[Run], session_id: str | None) -> Usage:
    """Return what a session used in these runs; one that nobody concluded counts as nothing."""
    return _sum(note.usage for note in _notes(runs) if note.session_id == session_id)


def spent_in(runs: Iterable[Run]) -> Usage:
    """Return what these runs used together, whatever their sessions."""
    return _sum(note.usage for note in _notes(runs))


def count_unknown_errors(runs: Iterable[Run]) -> int:
    """Return how many of these runs ended by an error of the model API that nobody knows."""
    return sum(note.by_unknown_error for note in _notes(runs))


def read_usage(run: Run) -> Spent | None:
    """Return what was noted of a run; `None` where nobody concluded it."""
    return read_model(run.folder / _FILE, Spent)


def last_of_session(runs: Sequence[Run], session_id: str) -> RunRecord | None:
    """Return the record of the last of these runs that had a session; `None` where none had."""
    for run in reversed(runs):
        record, note = run.record, read_usage(run)
        noted = note.session_id if note is not None else None
        if record is not None and session_id in {record.session_id, record.resumed_from, noted}:
            return record
    return None


def _notes(runs: Iterable[Run]) -> Iterator[Spent]:
    return (note for run in runs if (note := read_usage(run)) is not None)


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, NO_USAGE)
