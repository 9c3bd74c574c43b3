"""What a run used, noted beside it: figures of a resumed session add up, and each run is to show its own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from septet.agents.outcomes.outcome import NO_USAGE, Outcome
from septet.agents.runs.folders import Run, RunRecord
from septet.contracts.amounts import usd_text
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.system.json_files import read_model

_FILE: Final = "spent.json"


class Spent(Wire):
    """The usage of one run in its session."""

    session_id: str
    """Empty where none was told."""
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


MOST_TRIES: Final = 3
_REMEDY: Final = "Find out what it means, look in the run's files for what the agent did, then run `septet retry`."


def is_unknown_error(outcome: Outcome) -> bool:
    """Return whether a run ended by an error of which neither kind nor cure is known."""
    return (outcome.ended, outcome.kind) == ("api_error", "unknown")


def count_try(outcome: Outcome, tries: int, usage: Usage) -> Outcome:
    """Return the outcome of a try that ended so, in the CLI's words, with the tries' cost; the last one is final.

    Args:
        outcome: How the try ended.
        tries: How many ended so for the same turn, this one among them.
        usage: What all agents used that were started for it.
    """
    told = f"attempt {tries} of {MOST_TRIES}; cost so far: {_cost(usage)}"
    message = f"{outcome.message.rstrip()} (an unknown API error, {told})."
    if tries < MOST_TRIES:
        return replace(outcome, message=message)
    return replace(outcome, message=message, remedy=_REMEDY, retryable=False)


def _cost(usage: Usage) -> str:
    cost = "unknown" if usage.cost_usd is None else f"{usd_text(usage.cost_usd)} USD"
    return f"{cost}, {usage.tokens:,} tokens" if usage.tokens else cost
