"""One attempt at a turn: adopt a living agent, read a finished run, resume a session, or start anew."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Self

from septet.agents.outcomes.endings import SUPERSEDED
from septet.agents.outcomes.outcome import ExitRecord
from septet.agents.runs.folders import Run
from septet.agents.runs.lease import WAY_SECONDS, Lease, busy_error
from septet.agents.runs.logins import LoginBusyError
from septet.agents.sandbox.connections import Attachment, end_agent
from septet.agents.sandbox.model_hosts import model_keys, name_models
from septet.agents.turns.end_of_turn import failure_of
from septet.agents.turns.follow import StreamReading, TurnProgress, follow
from septet.agents.turns.guest_home import return_login
from septet.agents.turns.launch import launch
from septet.agents.turns.next_move import Accept, GiveUp, Move, Start
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_runs import NextStep, TurnResult, TurnRuns
from septet.agents.turns.warm import WarmProcessEndedError
from septet.contracts.amounts import Spending
from septet.errors import AgentCrashedError, AgentError
from septet.system.threads import LOOKS, shielded_thread, undoable_thread

_LOGIN_SECONDS: Final = 0.25
"""The pause between two checks whether another agent has refreshed the login."""

_SPARE_SECONDS: Final = 0.1
"""How many seconds after an agent's start a spare supervisor starts; earlier, it would slow the agent."""

_UNSTARTED_BORNE: Final = 3


@dataclass(frozen=True, slots=True)
class Adopt:
    """The decision to follow an agent that already runs for the request."""

    run: Run
    attachment: Attachment


@dataclass(slots=True)
class NeedsStart:
    """The decision to start an agent; holds the writer's lock until a start takes it, or the `with` block ends."""

    move: Start
    so_far: Spending
    """The spending of all agents that were started for the request."""
    leaves_work: bool
    """Whether the worktree contains another agent's work, of which the next agent knows nothing."""
    last_agent: str
    """The last agent of the turn; empty before the first agent."""
    lock: int | None
    """The descriptor of the writer's lock; `None` after it was passed on."""

    def changes_agent(self, request: TurnRequest) -> bool:
        """Return whether the request names another agent than the turn's last run."""
        return self.last_agent not in {request.adapter.name, ""}

    def pass_lock_on(self) -> int:
        """Return the lock's descriptor, which the caller must close."""
        if (lock := self.lock) is None:
            raise AssertionError
        self.lock = None
        return lock

    def __enter__(self) -> Self:
        """Return this decision."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock unless it was passed on."""
        if self.lock is not None:
            os.close(self.pass_lock_on())


@dataclass
class TurnAttempt:
    """One attempt at a request: `decide` returns what is needed, and the caller then calls `adopt` or `start`.

    A cancel leaves the agent running, for the next attempt to adopt; `end_agent` ends the agent.
    """

    request: TurnRequest
    lease: Lease
    """This attempt's right to start agents, to end agents and to write."""
    on_progress: Callable[[TurnProgress], None]
    """The function to call with the progress, at the start and every half second; its exceptions are raised."""
    _ended_another: bool = field(default=False, init=False)
    _unstarted: int = field(default=0, init=False)
    _login_patience_ends: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Set the times at which the waits end."""
        self._runs = self.request.runtime.runs
        self._turn_runs = TurnRuns(self.request, self.lease.epoch)
        self._patience_ends = time.monotonic() + self.request.runtime.patience_seconds
        self._way_at = time.monotonic() + WAY_SECONDS

    async def decide(self) -> TurnResult | Adopt | NeedsStart:
        """Return the turn's result, an agent to adopt, or an agent to start; wait while the writer's lock is held.

        Raises:
            AgentApiUnavailableError: The model API is unavailable; try again after the delay that the error names.
            AgentApiError: The model API refused.
            AgentLimitError: The agent reached a limit.
            AgentGaveUpError: The agent crashed after every kind of start.
            AgentError: The living agent of another request could not be ended.
            WorkspaceBusyError: The writer's lock is held without a living agent, or the supervisor of an ended
                agent still writes its record.
            SupersededError: A later attempt has begun.
            OSError: The disk or the machine refused.
        """
        while True:
            next_step = await undoable_thread(LOOKS, _release, self._lock_and_decide)
            decision = await (self._find_living() if next_step is None else self._decide_by(*next_step))
            if decision is not None:
                return decision

    async def adopt(self, decision: Adopt) -> TurnResult | None:
        """Follow a living agent to its end; return the result, or `None` if `decide` must be called again.

        Raises:
            AgentCrashedError: Supervisors end before they start an agent.
            OSError: The disk or the machine refused.
        """
        return await self._follow(decision.run, decision.attachment, None)

    async def start(self, needs: NeedsStart, request: TurnRequest) -> TurnResult | None:
        """Start an agent and follow it to its end; return the result, or `None` if `decide` must be called again.

        The new agent's supervisor takes the lock of `needs`. The agent or login may differ from the last run's.

        Raises:
            AgentCrashedError: The machine lacks a resource, supervisors end before they start an agent, or
                another agent refreshes the login for too long.
            AgentMissingError, AgentRefusedError, AgentError: The agent could not be started.
            OSError: The disk or the machine refused.
        """
        move = replace(needs.move, session_id=None) if needs.changes_agent(request) else needs.move
        try:
            run, attached = await undoable_thread(LOOKS, _detach, launch, request, move, needs.pass_lock_on())
        except LoginBusyError as busy:
            await self._await_login(busy)
            return None
        except WarmProcessEndedError:
            return None
        self._login_patience_ends = None
        return await self._follow(run, await Attachment.over(attached), move)

    def _lock_and_decide(self) -> tuple[int, NextStep] | None:
        """Take the writer's lock; return its descriptor and a decision, or `None` if another process holds it."""
        lock = self._runs.lock_writer(self.request.order_id)
        if lock is None:
            return None
        try:
            self.lease.check()
            return lock, self._turn_runs.decide()
        except BaseException:
            os.close(lock)
            raise

    async def _find_living(self) -> Adopt | None:
        """Return this request's living agent; `None` if `decide` must look again. End another request's agent."""
        self.lease.check()
        living = await asyncio.to_thread(self._runs.living, self.request.order_id)
        if living is not None and not self._turn_runs.owns(living):
            await end_agent(living, SUPERSEDED)
            self._ended_another = True
            return None
        attachment = await Attachment.to(living.folder) if living is not None else None
        if living is not None and attachment is not None:
            return Adopt(living, attachment)
        if time.monotonic() > self._patience_ends:
            raise busy_error(self._runs, self.request.order_id)
        if living is None and time.monotonic() > self._way_at:
            self._way_at = time.monotonic() + WAY_SECONDS
            await asyncio.to_thread(self.lease.make_way)
        await asyncio.sleep(0.02)
        return None

    async def _decide_by(self, lock: int, step: NextStep) -> TurnResult | NeedsStart:
        """Return the turn's result and close `lock`, or return an agent to start, which needs `lock`."""
        passed_on = False
        try:
            move = step.move
            if not isinstance(move, Start):
                await self._return_login(holds_lock=True)
                return _result_of(step, self.request)
            is_first = not (step.starts or move.was_reset)
            so_far = Spending() if is_first else await asyncio.to_thread(self._turn_runs.spending)
            leaves_work = self._ended_another or step.leaves_work
            self._ended_another = False
            passed_on = True
            return NeedsStart(move, so_far, leaves_work, step.last.agent if step.last is not None else "", lock)
        finally:
            if not passed_on:
                os.close(lock)

    async def _await_login(self, busy: LoginBusyError) -> None:
        """Wait a moment while another agent refreshes the login; raise if such waits together last too long."""
        now = time.monotonic()
        if self._login_patience_ends is None:
            self._login_patience_ends = now + self.request.runtime.login_patience_seconds
        if now > self._login_patience_ends:
            raise AgentCrashedError(
                f"Another agent refreshes the login {busy}, and is not done.",
                remedy="Septet tries again automatically.",
                retry_after_seconds=30.0,
            ) from busy
        await asyncio.sleep(_LOGIN_SECONDS)

    async def _follow(self, run: Run, attachment: Attachment, start: Start | None) -> TurnResult | None:
        loop, supervisors = asyncio.get_running_loop(), self.request.runtime.supervisors
        spare = loop.call_later(_SPARE_SECONDS, loop.run_in_executor, None, supervisors.prepare)
        try:
            reading, own_runs = await asyncio.to_thread(self._turn_runs.open, run)
            end = await follow(
                reading,
                attachment,
                turn_limit=self.request.limits.turns,
                pace=self.request.runtime.pace,
                on_progress=self.on_progress,
            )
        finally:
            spare.cancel()
            attachment.close()
        if end is None:
            await self._return_login()
            self._count_unstarted(run)
            return None
        loop.run_in_executor(None, supervisors.prepare)
        result, move = await asyncio.to_thread(self._note_end, reading, end, start, own_runs)
        return result if isinstance(move, Accept) else None

    def _note_end(
        self, reading: StreamReading, end: ExitRecord, start: Start | None, own_runs: list[Run]
    ) -> tuple[TurnResult, Move]:
        """Give the login back; record the run; return its result and the next move: accept, give up or start."""
        return_login(self.request)
        return self._turn_runs.note_end(reading, end, start, own_runs)

    async def _return_login(self, *, holds_lock: bool = False) -> None:
        await shielded_thread(LOOKS, return_login, self.request, holds_lock=holds_lock)

    def _count_unstarted(self, run: Run) -> None:
        """Raise `AgentCrashedError` if supervisors repeatedly end before they start an agent."""
        if run.has_started:
            return
        self._unstarted += 1
        if self._unstarted >= _UNSTARTED_BORNE:
            raise AgentCrashedError(
                f"The supervisor of {run.folder} ended before it started the agent, {self._unstarted} times now.",
                remedy=f"Make sure that {sys.executable} starts here and that the disk has room.",
                retry_after_seconds=30.0,
            )


def _result_of(step: NextStep, request: TurnRequest) -> TurnResult:
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
