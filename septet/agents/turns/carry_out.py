"""The ladder of a retry: adopt the living agent, else read its outcome, else resume it, else run again."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Self

from septet.agents.clis.endings import SUPERSEDED
from septet.agents.clis.outcome import NO_USAGE, ExitRecord, Outcome
from septet.agents.runs.archive import read_archive
from septet.agents.runs.folders import Run, StartReason
from septet.agents.runs.lease import WAY_SECONDS, Lease, busy
from septet.agents.runs.usage import note_spent, spent_before, spent_in
from septet.agents.turns.attachment import Attachment, end_agent
from septet.agents.turns.failures import failure_of
from septet.agents.turns.finalize_run import finalize_run
from septet.agents.turns.follow import StreamReading, TurnProgress, follow
from septet.agents.turns.launch import TurnRequest, launch
from septet.agents.turns.recovery import Accept, GiveUp, Move, Rung, Start, next_move
from septet.contracts.facts import Usage
from septet.errors import AgentCrashedError, AgentError
from septet.system.threads import undoable_thread

_LOOK_SECONDS: Final = 0.02

_UNSTARTED_BORNE: Final = 3
_UNSTARTED_WAIT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What an agent brought, and how."""

    outcome: Outcome
    """`answered`, or cancelled; everything else is raised."""
    run: Run
    recovered_by: Rung | None
    """The rung that gave the outcome; `None` when nothing had to be recovered."""
    agent_starts: int
    """How often an agent was started for it, over all attempts."""
    usage: Usage = NO_USAGE
    """What all agents together used that were started for it."""

    @property
    def started_at(self) -> str:
        """When the run began: ISO 8601, UTC."""
        return self.run.record.started_at if self.run.record is not None else ""


async def carry_out(
    request: TurnRequest,
    *,
    lease: Lease,
    on_progress: Callable[[TurnProgress], None],
    before_rerun: Callable[[], Awaitable[object]],
) -> TurnResult:
    """Carry a turn to its outcome, over as many attempts as it takes, with as few agents as can be.

    A cancel leaves the agent running, for the next attempt to adopt; `end_agent` ends it.

    Args:
        request: What is asked of whom.
        lease: This attempt's right to start, to end and to write.
        on_progress: Called at the start and every half second; what it raises is raised.
        before_rerun: Awaited before an agent starts anew in a worktree that another one has left as it is: take a
            rescue and return to the step's checkpoint.

    Raises:
        AgentApiUnavailableError: The model API passes; try again after the time it names, and no slot is held.
        AgentApiError: The model API refused.
        AgentLimitError: A limit was reached, also by the resumed session.
        AgentGaveUpError: It crashed on every rung.
        AgentCrashedError: The machine is short of something, or its supervisors end before they start an agent.
        AgentMissingError, AgentRefusedError, AgentError: It could not be started, or not be ended.
        WorkspaceBusyError: The writer's lock is held, and no agent lives that would hold it.
        SupersededError: A later attempt has begun.
        OSError: The disk or the machine refused.
    """
    return await _Attempt(request, lease, on_progress, before_rerun).carry_out()


def last_result(request: TurnRequest) -> TurnResult | None:
    """Return what the last agent of a request came to, and start none; `None` where none was started.

    Raises:
        OSError: The run's files cannot be read.
    """
    return _Attempt.looking(request).last()


@dataclass(frozen=True, slots=True)
class _Found:
    """What an attempt that holds the writer's lock finds on disk."""

    move: Move
    starts: tuple[StartReason, ...]
    last: TurnResult | None
    """What the last run of this key came to."""
    after_reset: bool
    """All runs up to now are of other workflow runs, or of before the activity was reset."""


class _Attempt:
    """One attempt at one request."""

    def __init__(
        self,
        request: TurnRequest,
        lease: Lease | None,
        on_progress: Callable[[TurnProgress], None],
        before_rerun: Callable[[], Awaitable[object]],
    ) -> None:
        self._request = request
        self._lease = lease
        self._runs = request.means.runs
        self._on_progress = on_progress
        self._before_rerun = before_rerun
        self._followed: dict[str, TurnResult] = {}
        """By run: what this attempt saw to its end."""
        self._ended_another = False
        self._unstarted = 0
        self._patience_ends = time.monotonic() + request.means.patience_seconds
        self._way_at = time.monotonic() + WAY_SECONDS

    @classmethod
    def looking(cls, request: TurnRequest) -> Self:
        """Return one that starts nothing."""

        async def nothing() -> None:
            """Do nothing."""

        return cls(request, None, lambda _: None, nothing)

    def last(self) -> TurnResult | None:
        """Return what the last run of this key came to."""
        ours = [run for run in self._runs.lately(self._request.order_id) if run.started and self._is_ours(run)]
        for run in ours:
            finalize_run(run)
        last = self._last_of(ours)
        return replace(last, recovered_by=None) if last is not None else None

    async def carry_out(self) -> TurnResult:
        """Go from rung to rung until one gives an outcome that counts."""
        while True:
            lock = await undoable_thread(_release, self._runs.lock_writer, self._request.order_id)
            carried = await (self._join_living() if lock is None else self._go_on(lock))
            if carried is not None:
                return carried

    async def _join_living(self) -> TurnResult | None:
        """Adopt the run that lives, or end it if it is not ours; `None`: look again."""
        self._check_lease()
        living = await asyncio.to_thread(self._runs.living, self._request.order_id)
        if living is not None and not self._is_ours(living):
            await end_agent(living, SUPERSEDED)
            self._ended_another = True
            return None
        attachment = await Attachment.to(living.folder) if living is not None else None
        if living is not None and attachment is not None:
            return await self._follow(living, attachment, "adopt")
        if time.monotonic() > self._patience_ends:
            raise busy(self._runs, self._request.order_id)
        if living is None and self._lease is not None and time.monotonic() > self._way_at:
            self._way_at = time.monotonic() + WAY_SECONDS
            await asyncio.to_thread(self._lease.make_way)
        await asyncio.sleep(_LOOK_SECONDS)
        return None

    async def _go_on(self, lock: int) -> TurnResult | None:
        """Do what follows from what is on disk; nobody lives, and the lock is ours."""
        passed_on = False
        try:
            self._check_lease()
            found = await asyncio.to_thread(self._look)
            move = found.move
            if not isinstance(move, Start):
                return self._settled(found)
            if self._ended_another or move.leaves_a_session or (move.because == "first" and found.after_reset):
                await self._before_rerun()
                self._ended_another = False
            passed_on = True
            run, attached = await undoable_thread(_detach, launch, self._request, move, lock)
        finally:
            if not passed_on:
                os.close(lock)
        return await self._follow(run, await Attachment.over(attached), move.rung)

    async def _follow(self, run: Run, attachment: Attachment, rung: Rung | None) -> TurnResult | None:
        """Follow a run to its end; `None` when it takes another move."""
        try:
            reading, ours = await asyncio.to_thread(self._open, run)
            end = await follow(
                reading,
                attachment,
                turn_limit=self._request.limits.turns,
                pace=self._request.means.pace,
                on_progress=self._on_progress,
            )
        finally:
            attachment.close()
        if end is None:
            self._count_unstarted(run)
            return None
        carried = await asyncio.to_thread(_concluded, reading, end, rung, ours)
        self._followed[run.name] = carried
        return carried if isinstance(self._next_move(_starts(ours), carried), Accept) else None

    def _count_unstarted(self, run: Run) -> None:
        """Give up where supervisors end one after the other before they have started an agent."""
        if run.started:
            return
        self._unstarted += 1
        if self._unstarted >= _UNSTARTED_BORNE:
            raise AgentCrashedError(
                f"The supervisor of {run.folder} ended before it started the agent, {self._unstarted} times now.",
                remedy=f"See that {sys.executable} starts here, and that the disk has room.",
                retry_after_seconds=_UNSTARTED_WAIT_SECONDS,
            )

    def _look(self) -> _Found:
        """Lay to rest what died unseen, and decide by the runs on disk."""
        runs = [run for run in self._runs.lately(self._request.order_id) if run.started]
        for run in runs:
            finalize_run(run)
        ours = [run for run in runs if self._is_ours(run)]
        last = self._last_of(ours)
        starts = _starts(ours)
        keys = {run.record.key for run in runs if run.record is not None}
        was_reset = self._request.key in keys and not ours
        return _Found(
            move=self._next_move(starts, last),
            starts=starts,
            last=last,
            after_reset=was_reset or (bool(runs) and self._request.key.run_id not in {key.run_id for key in keys}),
        )

    def _last_of(self, ours: list[Run]) -> TurnResult | None:
        if not ours:
            return None
        run = ours[-1]
        if run.name in self._followed:
            return self._followed[run.name]
        reading, _ = self._open(run)
        return _concluded(reading, run.exit() or ExitRecord(cause="lost"), "read", ours)

    def _open(self, run: Run) -> tuple[StreamReading, list[Run]]:
        """Begin to read a run, as one more attempt at it; and return all that were started for our request."""
        runs = self._runs.lately(self._request.order_id)
        resumed = run.record.resumed_from if run.record is not None else None
        past = read_archive(run.folder.parent).of(resumed).usage
        before = past.plus(spent_before((other for other in runs if other.folder != run.folder), resumed))
        ours = [other for other in runs if self._is_ours(other) and (other.started or other.folder == run.folder)]
        epoch = self._lease.epoch if self._lease is not None else 0
        return StreamReading(run, self._request.adapter.dialect(before), epoch), ours

    def _next_move(self, starts: tuple[StartReason, ...], last: TurnResult | None) -> Move:
        return next_move(
            starts,
            last.outcome if last is not None else None,
            seen_now=last is not None and last.run.name in self._followed,
            resumes_after_kill=self._request.adapter.capabilities.resumes_after_kill,
        )

    def _settled(self, found: _Found) -> TurnResult:
        """Return what was found, or raise it."""
        last = found.last
        if last is None:
            raise AgentError("There is no run to read.")
        if isinstance(found.move, GiveUp):
            crashed_again = found.move.crashed_again
            raise failure_of(last.outcome, last.run, found.starts, crashed_again=crashed_again)
        return last

    def _check_lease(self) -> None:
        """See that no later attempt has begun, before anything is started, ended or written."""
        if self._lease is not None:
            self._lease.check()

    def _is_ours(self, run: Run) -> bool:
        return run.record is not None and run.record.key == self._request.key and not run.set_aside


def _starts(runs: list[Run]) -> tuple[StartReason, ...]:
    return tuple(run.record.because for run in runs if run.record is not None)


def _concluded(reading: StreamReading, end: ExitRecord, rung: Rung | None, ours: list[Run]) -> TurnResult:
    outcome = reading.outcome(end)
    note_spent(reading.run, outcome)
    others = (run for run in ours if run.folder != reading.run.folder)
    usage = spent_in(others).plus(outcome.usage)
    return TurnResult(outcome, reading.run, rung, len(ours), usage)


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _detach(launched: tuple[Run, socket.socket]) -> None:
    launched[1].close()
