"""The runs of one request for a turn: outcomes, usage, and the next move that follows from the runs."""

from dataclasses import dataclass, replace
from typing import Final

from septet.agents.clis.adapter import Adapter
from septet.agents.clis.registry import adapter_for
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord, Outcome
from septet.agents.runs.folders import Run, read_archive
from septet.agents.runs.records import StartReason
from septet.agents.runs.usage import (
    count_try,
    count_unknown_errors,
    is_unknown_error,
    note_spent,
    read_usage,
    seconds_of,
    spending_of,
    spent_before,
    spent_in,
    with_seen_usage,
)
from septet.agents.turns.end_of_turn import finalize_run
from septet.agents.turns.follow import StreamReading
from septet.agents.turns.next_move import Move, Rung, SessionUse, Start, hand_over, next_move
from septet.agents.turns.request import TurnRequest
from septet.contracts.amounts import Spending
from septet.contracts.facts import Usage

_RECORD_SECONDS: Final = 5.0
"""The seconds to wait for a supervisor's record of the end, before the agent's usage is counted."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The outcome of a turn, with the usage and duration of all runs of the turn."""

    outcome: Outcome
    """The outcome: an answer, or a cancel; every other outcome is raised."""
    run: Run
    recovered_by: Rung | None
    """The kind of retry that gave the outcome; `None` if nothing had to be recovered."""
    agent_starts: int
    """The number of agent starts for the turn, over all attempts."""
    usage: Usage = NO_USAGE
    workers: tuple[str, ...] = ()
    """The agents of the turn, in order; a login other than the worker's own follows in parentheses."""
    was_refused: bool = False
    """Whether the model of one agent refused, and another agent took over."""
    started_at: str = ""
    duration_seconds: float = 0.0

    @property
    def agent(self) -> str:
        """The name of the run's agent; empty if the run's record cannot be read."""
        return self.run.record.agent if self.run.record is not None else ""


@dataclass(frozen=True, slots=True)
class NextStep:
    """What an attempt does next for its turn, and the facts about earlier runs from which this follows."""

    move: Move
    starts: tuple[StartReason, ...]
    last: TurnResult | None
    """The result of the request's last run."""
    leaves_work: bool
    """Whether the worktree may hold work that the next agent does not know: a rerun, or a start after a reset."""


class TurnRuns:
    """The runs of one request, as one attempt reads them from disk."""

    def __init__(self, request: TurnRequest, epoch: int = 0) -> None:
        """Take a request and the number of this attempt; read no run yet."""
        self._request = request
        self._epoch = epoch
        self._runs = request.runtime.runs
        self._seen: dict[str, TurnResult] = {}
        """The results of the runs that this attempt followed to their end, by run."""

    def owns(self, run: Run) -> bool:
        """Return whether a run belongs to the request and was started after the last reset of the activity."""
        return self._is_of_key(run) and not run.set_aside

    def last_result(self) -> TurnResult | None:
        """Record the ends of dead runs; return the result of the request's last run, or `None` if there is no run.

        Raises:
            WorkspaceBusyError: The supervisor of a run lives, and has not written its record yet.
        """
        own_runs = [run for run in self._started_runs() if self.owns(run)]
        _finalize(own_runs)
        last = self._last_of(own_runs)
        return replace(last, recovered_by=None) if last is not None else None

    def decide(self) -> NextStep:
        """Record the ends of dead runs, and decide from the runs on disk what the attempt does next.

        Raises:
            WorkspaceBusyError: The supervisor of an earlier run lives, and has not written its record yet.
        """
        all_runs = self._runs.lately(self._request.order_id)
        runs = [run for run in all_runs if run.has_started]
        _finalize(runs)
        own_runs = [run for run in runs if self.owns(run)]
        last = self._last_of(own_runs)
        starts = start_reasons(own_runs)
        has_set_aside = any(run.set_aside for run in runs if self._is_of_key(run))
        if has_set_aside:
            self.conclude()  # their usage is counted before the next start
        move = self.next_move(starts, last)
        if isinstance(move, Start):
            move = replace(
                move,
                serial=self._runs.next_serial(self._request.order_id, all_runs),
                was_reset=has_set_aside,
                earlier=starts,
            )
        return NextStep(
            move=move,
            starts=starts,
            last=last,
            leaves_work=isinstance(move, Start)
            and (move.leaves_a_session or (move.because == "first" and self._is_after_reset(runs, own_runs))),
        )

    def _is_after_reset(self, runs: list[Run], own_runs: list[Run]) -> bool:
        """Return whether all of the request's runs were set aside, or no run in `runs` is of this workflow run."""
        run_ids = {run.record.key.run_id for run in runs if run.record is not None}
        was_reset = not own_runs and any(self._is_of_key(run) for run in runs)
        return was_reset or (bool(runs) and self._request.key.run_id not in run_ids)

    def conclude(self) -> list[Run]:
        """Record the ends and the usage of the request's runs, where these are missing, and return the runs.

        Runs from before a reset of the activity are included, because these runs cost money too.

        Raises:
            WorkspaceBusyError: The supervisor of a run lives, and does not write its record within five seconds.
            AgentCrashedError: The runner, which has to kill leftover processes, does not answer.
            OSError: A run's files cannot be read or written.
        """
        runs = self.paid_runs()
        for run in runs:
            if run.await_exit(_RECORD_SECONDS) is None:
                finalize_run(run, within_seconds=0.0)
            if read_usage(run) is None:
                self._read(run, [run])
        return runs

    def spending(self) -> Spending:
        """Return what all agents of the request have used, as far as known."""
        return spending_of(self.paid_runs())

    def next_move(self, starts: tuple[StartReason, ...], last: TurnResult | None) -> Move:
        """Return the next move; `starts` has the reasons of earlier starts, `last` the result of the last run."""
        outcome, run = (last.outcome, last.run) if last is not None else (None, None)
        move = next_move(
            starts,
            outcome,
            seen_now=run is not None and run.name in self._seen,
            session=self._session_of(run),
            resumes_after_kill=self._adapter_of(run).capabilities.resumes_after_kill,
        )
        return hand_over(move, starts, outcome) if self._request.has_fallback else move

    def open(self, run: Run) -> tuple[StreamReading, list[Run]]:
        """Open a run's stream for this attempt; return the stream and the started runs of the request."""
        runs = self._runs.lately(self._request.order_id)
        own_runs = [each for each in runs if self.owns(each) and (each.has_started or each.folder == run.folder)]
        dialect = self._adapter_of(run).dialect(_used_before(run, runs))
        most_bytes = self._request.runtime.resources.get("output_bytes", 0)
        return StreamReading(run, dialect, self._epoch, self._request.is_answer, most_bytes=most_bytes), own_runs

    def note_end(
        self, reading: StreamReading, end: ExitRecord, start: Start | None, own_runs: list[Run]
    ) -> tuple[TurnResult, Move]:
        """Record a run's end; return the run's result and the next move. An adopted run has no `start`."""
        result = _conclude(reading, end, "adopt" if start is None else start.rung, own_runs)
        self._seen[reading.run.name] = result
        return result, self.next_move(start_reasons(own_runs), result)

    def starts(self) -> tuple[StartReason, ...]:
        """Return the reason of each start of an agent for the request, in order."""
        return start_reasons([run for run in self._started_runs() if self.owns(run)])

    def _adapter_of(self, run: Run | None) -> Adapter:
        """Return the adapter of a run's agent, which may differ from the request's agent."""
        own = self._request.adapter
        agent = run.record.agent if run is not None and run.record is not None else own.name
        return own if agent == own.name else adapter_for(agent)

    def _session_of(self, last: Run | None) -> SessionUse:
        if self._request.turn.about_session:
            return "asked"
        record = last.record if last is not None else None
        return "resumed" if record is not None and record.resumed_from is not None else "new"

    def _is_of_key(self, run: Run) -> bool:
        return run.record is not None and run.record.key == self._request.key

    def paid_runs(self) -> list[Run]:
        """Return the started runs of the request, including runs from before a reset of the activity."""
        return [run for run in self._started_runs() if self._is_of_key(run)]

    def _started_runs(self) -> list[Run]:
        return [run for run in self._runs.lately(self._request.order_id) if run.has_started]

    def _last_of(self, own_runs: list[Run]) -> TurnResult | None:
        if not own_runs:
            return None
        return self._seen.get(own_runs[-1].name) or self._read(own_runs[-1], own_runs)

    def _read(self, run: Run, own_runs: list[Run]) -> TurnResult:
        """Read an ended run from its beginning, record its usage, and return its result."""
        reading, _ = self.open(run)
        return _conclude(reading, run.exit() or ExitRecord(cause="lost"), "read", own_runs)


def _used_before(run: Run, runs: list[Run]) -> Usage:
    """Return the usage of a run's session before the run."""
    session_id = run.record.resumed_from if run.record is not None else None
    if session_id is None:
        return NO_USAGE
    archived = read_archive(run.folder.parent).of(session_id).usage
    return archived.plus(spent_before((each for each in runs if each.folder != run.folder), session_id))


def _finalize(runs: list[Run]) -> None:
    """Write the missing records of runs that have ended."""
    for run in runs:
        if run.exit() is None:
            finalize_run(run)


def start_reasons(runs: list[Run]) -> tuple[StartReason, ...]:
    """Return the start reason of each run."""
    return tuple(run.record.because for run in runs if run.record is not None)


def _conclude(reading: StreamReading, end: ExitRecord, rung: Rung | None, own_runs: list[Run]) -> TurnResult:
    outcome = with_seen_usage(reading.outcome(end), reading.run)
    is_unknown = is_unknown_error(outcome)
    note_spent(reading.run, outcome, by_unknown_error=is_unknown)
    others = [run for run in own_runs if run.folder != reading.run.folder]
    usage = spent_in(others).plus(outcome.usage) if others else outcome.usage
    if is_unknown:
        outcome = count_try(outcome, count_unknown_errors(others) + 1, usage)
    records = [run.record for run in own_runs if run.record is not None]
    return TurnResult(
        outcome,
        reading.run,
        rung,
        agent_starts=len(own_runs),
        usage=usage,
        workers=tuple(dict.fromkeys(record.worker for record in records)),
        was_refused="refused" in start_reasons(own_runs),
        started_at=records[0].started_at if records else "",
        duration_seconds=(outcome.duration_seconds or 0.0) + sum(map(seconds_of, others)),
    )
