"""The usage of each run, without the earlier runs of its session, in a file of the run's folder.

A lane's archive keeps the sums of ended runs, so that no step reads these runs again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import NO_USAGE, Outcome
from septet.agents.runs.folders import ArchivedRuns, InSession, Run, Runs, read_archive, write_archive
from septet.agents.runs.logs import tokens_seen
from septet.agents.runs.records import RunRecord
from septet.contracts.amounts import Spending, usd_text
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.system.durable import read_model

_FILE: Final = "spent.json"
_TIMES_MORE, _TOKENS_MORE = 2, 20_000
"""The factor and the tokens by which a model's report may exceed the CLI's report: a CLI also sends requests that
it does not report, for example for a title."""
MOST_TRIES: Final = 3
"""The most tries of a turn that end in an unknown error; each try may cost money."""
_REMEDY: Final = "Find out what it means, look in the run's files for what the agent did, then run `septet retry`."


class Spent(Wire):
    """The usage of one run alone, without the earlier runs of its session."""

    session_id: str
    """The session's id; empty if the CLI named no session."""
    usage: Usage
    by_unknown_error: bool = False


def note_spent(run: Run, outcome: Outcome, *, by_unknown_error: bool = False) -> None:
    """Record a run's usage and session; skip a run without a session, unless it ended `by_unknown_error`."""
    if outcome.session_id is not None or by_unknown_error:
        session_id = outcome.session_id or ""
        note = Spent(session_id=session_id, usage=outcome.usage, by_unknown_error=by_unknown_error)
        run.put(_FILE, note.model_dump_json().encode())


def spent_before(runs: Iterable[Run], session_id: str | None) -> Usage:
    """Return the usage of one session in these runs; runs without recorded usage count as zero."""
    return _sum(note.usage for note in _notes(runs) if note.session_id == session_id)


def spent_in(runs: Iterable[Run]) -> Usage:
    """Return the usage of these runs together, over all sessions."""
    return _sum(note.usage for note in _notes(runs))


def count_unknown_errors(runs: Iterable[Run]) -> int:
    """Return how many of these runs ended by an unknown error of the model API."""
    return sum(note.by_unknown_error for note in _notes(runs))


def read_usage(run: Run) -> Spent | None:
    """Return the recorded usage of a run; `None` if none is recorded."""
    return read_model(run.folder / _FILE, Spent)


def last_of_session(runs: Sequence[Run], session_id: str) -> RunRecord | None:
    """Find the last of these runs that was in the session, and return its record; `None` if no run was."""
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


def is_unknown_error(outcome: Outcome) -> bool:
    """Return whether a run ended by an error of the model API with an unknown cause."""
    return (outcome.ended, outcome.kind) == ("api_error", "unknown")


def count_try(outcome: Outcome, tries: int, usage: Usage) -> Outcome:
    """Add the number and cost of tries to an outcome's message; allow no retry after `MOST_TRIES` tries."""
    cost = "unknown" if usage.cost_usd is None else f"{usd_text(usage.cost_usd)} USD"
    cost = f"{cost}, {usage.tokens:,} tokens" if usage.tokens else cost
    told = f"attempt {tries} of {MOST_TRIES}; cost so far: {cost}"
    message = f"{outcome.message.rstrip()} (an unknown API error, {told})."
    if tries < MOST_TRIES:
        return replace(outcome, message=message)
    return replace(outcome, message=message, remedy=_REMEDY, retryable=False)


def seconds_of(run: Run) -> float:
    """Return how long a run's agent lived, in seconds; 0 if no duration is recorded."""
    end = run.exit()
    return (end.duration_seconds or 0.0) if end is not None else 0.0


def spending_of(runs: Iterable[Run]) -> Spending:
    """Return the spending of these runs together."""
    return reduce(Spending.plus, map(_spending_of_run, runs), Spending())


def spending_by_worker(runs: Iterable[Run]) -> dict[tuple[str, str], Spending]:
    """Return the spending by worker, here a pair of agent and login, in the order of the first starts."""
    by_worker: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.record is not None:
            by_worker.setdefault((run.record.agent, run.record.login), []).append(run)
    return {worker: spending_of(each) for worker, each in by_worker.items()}


def _spending_of_run(run: Run) -> Spending:
    note = read_usage(run)
    use = Spending.of(note.usage if note is not None else NO_USAGE, seconds_of(run))
    if use.tokens or not use.seconds or run.record is None or adapter_for(run.record.agent).capabilities.tells:
        return use
    return use.model_copy(update={"unpriced": 1})


def with_seen_usage(outcome: Outcome, run: Run) -> Outcome:
    """Return the outcome with the usage that the model reported to the proxy, if the CLI reported far less.

    Guests can forge the CLI's stream. The cost grows in proportion; it becomes unknown if the stream has no price.
    """
    read, written = tokens_seen(run)
    if read + written <= _TOKENS_MORE:
        return outcome
    agent, used = run.record.agent if run.record is not None else "", outcome.usage
    told = used.tokens
    is_more = read + written > _TIMES_MORE * told + _TOKENS_MORE
    if not is_more or "tokens" not in adapter_for(agent).capabilities.tells:
        return outcome
    usage = used.model_copy(
        update={
            "input_tokens": used.input_tokens + max(read - (told - used.output_tokens), 0),
            "output_tokens": max(written, used.output_tokens),
            "estimated": True,
        }
    )
    cost = used.cost_usd * usage.tokens / told if used.cost_usd and told else None
    warning = f"the model says that it used {read + written:,} tokens, and {agent} says {told:,}"
    usage = usage.model_copy(update={"cost_usd": cost})
    return replace(outcome, usage=usage, warnings=(*outcome.warnings, warning))


def pass_on(runs: Runs, lane: str) -> None:
    """Archive a lane's ended and unstarted runs before the next visit; the caller holds the writer's lock.

    Raises:
        OSError: The disk refused; nothing has changed.
    """
    over = [run for run in runs.lately(lane) if not run.has_started or run.exit() is not None]
    if not over:
        return
    archived = read_archive(runs.folder_of(lane))
    serials = [run.record.serial for run in over if run.record is not None]
    sessions = dict(archived.sessions)
    for run in over:
        _add(sessions, run)
    names = archived.runs | {run.folder.name for run in over}
    write_archive(
        runs.folder_of(lane), ArchivedRuns(runs=names, serial=max((archived.serial, *serials)), sessions=sessions)
    )


def _add(sessions: dict[str, InSession], run: Run) -> None:
    """Add a run's usage and bytes to the sums of its session."""
    if (spent := read_usage(run)) is not None and spent.session_id:
        so_far = sessions.get(spent.session_id, InSession())
        model = run.record.model if run.record is not None else so_far.model
        update = {"usage": so_far.usage.plus(spent.usage), "model": model}
        sessions[spent.session_id] = so_far.model_copy(update=update)
    if run.record is not None and run.record.session_id is not None:
        so_far = sessions.get(run.record.session_id, InSession())
        sessions[run.record.session_id] = so_far.model_copy(
            update={
                "prompt_bytes": so_far.prompt_bytes + run.size_of("prompt.md"),
                "stream_bytes": so_far.stream_bytes + run.size_of("stdout.jsonl"),
            }
        )
