"""The ladder of a retry: adopt the living agent, else read its outcome, else resume it, else run again."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from septet.agents.homes.logins import LoginBusyError
from septet.agents.outcomes.endings import SUPERSEDED
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import Run
from septet.agents.runs.lease import WAY_SECONDS, Lease, busy_error
from septet.agents.sandbox.attachment import Attachment, end_agent
from septet.agents.sandbox.model_hosts import model_keys, name_models
from septet.agents.turns.failures import failure_of
from septet.agents.turns.follow import StreamReading, TurnProgress, follow
from septet.agents.turns.guest_home import return_login
from septet.agents.turns.launch import launch
from septet.agents.turns.recovery import Accept, GiveUp, Move, Rung, Start
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import NextStep, TurnResult, TurnRuns
from septet.contracts.amounts import Spending
from septet.errors import AgentCrashedError, AgentError
from septet.system.threads import LOOKS, shielded_thread, undoable_thread

BeforeStart = Callable[[Spending], Awaitable[TurnRequest]]
"""Gives the request of the agent that may start, by what the turn has used so far."""

_LOOK_SECONDS: Final = 0.02

_LOGIN_SECONDS: Final = 0.25
"""Between two looks whether another agent has refreshed the login."""
_LOGIN_AGAIN_SECONDS: Final = 30.0

_SPARE_SECONDS: Final = 0.1
"""After an agent's start, until a supervisor is made for the next one: not while this one needs the machine."""

_UNSTARTED_BORNE: Final = 3
_UNSTARTED_WAIT_SECONDS: Final = 30.0


async def carry_out(
    request: TurnRequest,
    *,
    lease: Lease,
    on_progress: Callable[[TurnProgress], None],
    before_rerun: Callable[[], Awaitable[object]],
    before_start: BeforeStart | None = None,
) -> TurnResult:
    """Carry a turn to its outcome, over as many attempts as it takes, with as few agents as can be.

    A cancel leaves the agent running, for the next attempt to adopt; `end_agent` ends it.

    Args:
        request: What is asked of whom.
        lease: This attempt's right to start, to end and to write.
        on_progress: Called at the start and every half second; what it raises is raised.
        before_rerun: Awaited before an agent starts anew in a worktree that another one has left as it is: take a
            rescue and return to the step's checkpoint.
        before_start: Awaited before each start of an agent, with what the turn has used so far; it returns the
            request as this agent has it: it may be another one than that of the last start, with another login.

    Raises:
        AgentApiUnavailableError: The model API passes; try again after the time it names, and no slot is held.
        AgentApiError: The model API refused.
        AgentLimitError: A limit was reached, also by the resumed session.
        AgentGaveUpError: It crashed on every rung.
        AgentCrashedError: The machine is short of something, its supervisors end before they start an agent, or
            another agent is refreshing the login for long.
        AgentMissingError, AgentRefusedError, AgentError: It could not be started, or not be ended.
        WorkspaceBusyError: The writer's lock is held, and no agent lives that would hold it; or one has ended, and
            its supervisor is still writing the record.
        SupersededError: A later attempt has begun.
        OSError: The disk or the machine refused.
    """
    return await _Attempt(request, lease, on_progress, before_rerun, before_start).carry_out()


def last_result(request: TurnRequest) -> TurnResult | None:
    """Return what the last agent of a request came to, and start none; `None` where none was started.

    Raises:
        WorkspaceBusyError: Its supervisor lives and has not written its record yet.
        OSError: The run's files cannot be read.
    """
    return TurnRuns(request).last_result()


class _Attempt:
    """One attempt at one request."""

    def __init__(
        self,
        request: TurnRequest,
        lease: Lease,
        on_progress: Callable[[TurnProgress], None],
        before_rerun: Callable[[], Awaitable[object]],
        before_start: BeforeStart | None,
    ) -> None:
        self._request = request
        self._lease = lease
        self._runs = request.runtime.runs
        self._turn_runs = TurnRuns(request, lease.epoch)
        self._on_progress = on_progress
        self._before_rerun = before_rerun
        self._before_start = before_start
        self._granted: tuple[Spending, TurnRequest] | None = None
        self._ended_another = False
        self._unstarted = 0
        self._patience_ends = time.monotonic() + request.runtime.patience_seconds
        self._login_patience_ends: float | None = None
        self._way_at = time.monotonic() + WAY_SECONDS

    async def carry_out(self) -> TurnResult:
        """Go from rung to rung until one gives an outcome that counts."""
        while True:
            decision = await undoable_thread(LOOKS, _release, self._lock_and_decide)
            result = await (self._join_living() if decision is None else self._start_next(*decision))
            if result is not None:
                return result

    def _lock_and_decide(self) -> tuple[int, NextStep] | None:
        """Take the writer's lock, and say what follows from what is on disk; `None` where another holds it."""
        lock = self._runs.lock_writer(self._request.order_id)
        if lock is None:
            return None
        try:
            self._lease.check()
            return lock, self._turn_runs.decide()
        except BaseException:
            os.close(lock)
            raise

    async def _join_living(self) -> TurnResult | None:
        """Adopt the run that lives, or end it if it is not ours; `None`: look again."""
        self._lease.check()
        living = await asyncio.to_thread(self._runs.living, self._request.order_id)
        if living is not None and not self._turn_runs.owns(living):
            await end_agent(living, SUPERSEDED)
            self._ended_another = True
            return None
        attachment = await Attachment.to(living.folder) if living is not None else None
        if living is not None and attachment is not None:
            return await self._follow(living, attachment, "adopt")
        if time.monotonic() > self._patience_ends:
            raise busy_error(self._runs, self._request.order_id)
        if living is None and time.monotonic() > self._way_at:
            self._way_at = time.monotonic() + WAY_SECONDS
            await asyncio.to_thread(self._lease.make_way)
        await asyncio.sleep(_LOOK_SECONDS)
        return None

    async def _start_next(self, lock: int, step: NextStep) -> TurnResult | None:
        """Do what follows from what is on disk; nobody lives, and the lock is ours."""
        passed_on = False
        try:
            move = step.move
            if not isinstance(move, Start):
                await self._return_login(holds_lock=True)
                return _settle(step, self._request)
            if self._ended_another or move.leaves_a_session or (move.because == "first" and step.after_reset):
                await self._before_rerun()
                self._ended_another = False
            request = self._request
            if self._before_start is not None:
                request = await self._ask_to_start(
                    self._before_start, is_first=not (step.starts or move.was_reset)
                )
            if step.last is not None and step.last.agent not in {request.adapter.name, ""}:
                await self._before_rerun()  # another agent goes on, which does not know what the last one did
                move = replace(move, session_id=None)
            passed_on = True
            run, attached = await undoable_thread(LOOKS, _detach, launch, request, move, lock)
        except LoginBusyError as busy:
            await self._await_login(busy)
            return None
        finally:
            if not passed_on:
                os.close(lock)
        self._login_patience_ends = None
        return await self._follow(run, await Attachment.over(attached), move.rung)

    async def _await_login(self, busy: LoginBusyError) -> None:
        """Wait a moment for the login that another agent is about to refresh, and not without end."""
        now = time.monotonic()
        if self._login_patience_ends is None:
            self._login_patience_ends = now + self._request.runtime.login_patience_seconds
        if now > self._login_patience_ends:
            raise AgentCrashedError(
                f"Another agent refreshes the login {busy}, and is not done.",
                remedy="Septet tries again automatically.",
                retry_after_seconds=_LOGIN_AGAIN_SECONDS,
            ) from busy
        await asyncio.sleep(_LOGIN_SECONDS)

    async def _ask_to_start(self, before_start: BeforeStart, *, is_first: bool) -> TurnRequest:
        """Return the request of an agent that may start; it is asked for once, also where its start is put off."""
        so_far = Spending() if is_first else await asyncio.to_thread(self._turn_runs.spending)
        if self._granted is None or self._granted[0] != so_far:
            self._granted = (so_far, await before_start(so_far))
        return self._granted[1]

    async def _follow(self, run: Run, attachment: Attachment, rung: Rung | None) -> TurnResult | None:
        """Follow a run to its end; `None` when it takes another move."""
        loop, supervisors = asyncio.get_running_loop(), self._request.runtime.supervisors
        spare = loop.call_later(_SPARE_SECONDS, loop.run_in_executor, None, supervisors.prepare)
        try:
            reading, own_runs = await asyncio.to_thread(self._turn_runs.open, run)
            end = await follow(
                reading,
                attachment,
                turn_limit=self._request.limits.turns,
                pace=self._request.runtime.pace,
                on_progress=self._on_progress,
            )
        finally:
            spare.cancel()
            attachment.close()
        if end is None:
            await self._return_login()
            self._count_unstarted(run)
            return None
        loop.run_in_executor(None, supervisors.prepare)
        result, move = await asyncio.to_thread(self._note_end, reading, end, rung, own_runs)
        return result if isinstance(move, Accept) else None

    def _note_end(
        self, reading: StreamReading, end: ExitRecord, rung: Rung | None, own_runs: list[Run]
    ) -> tuple[TurnResult, Move]:
        """Take the login back, and note a run that was followed to its end."""
        return_login(self._request)
        return self._turn_runs.note_end(reading, end, rung, own_runs)

    async def _return_login(self, *, holds_lock: bool = False) -> None:
        await shielded_thread(LOOKS, return_login, self._request, holds_lock=holds_lock)

    def _count_unstarted(self, run: Run) -> None:
        """Give up where supervisors end one after the other before they have started an agent."""
        if run.has_started:
            return
        self._unstarted += 1
        if self._unstarted >= _UNSTARTED_BORNE:
            raise AgentCrashedError(
                f"The supervisor of {run.folder} ended before it started the agent, {self._unstarted} times now.",
                remedy=f"Make sure that {sys.executable} starts here and that the disk has room.",
                retry_after_seconds=_UNSTARTED_WAIT_SECONDS,
            )


def _settle(step: NextStep, request: TurnRequest) -> TurnResult:
    """Return what the last run came to, or raise it."""
    last = step.last
    if last is None:
        raise AgentError("There is no run to read.")
    if isinstance(step.move, GiveUp):
        error = failure_of(last.outcome, last.run, step.starts, crashed_again=step.move.crashed_again)
        if "127.0.0.1:" in error.message:
            host = request.runtime.host
            keys = model_keys(request.adapter, host, request.adapter.invocation(request.turn, host))
            error.message = name_models(error.message, keys)
        raise error
    return last


def _release(decision: tuple[int, NextStep] | None) -> None:
    if decision is not None:
        os.close(decision[0])


def _detach(launch: tuple[Run, socket.socket]) -> None:
    launch[1].close()
