"""Run a turn within its budgets.

Only this module starts agents for work orders. It reserves room in the budgets before each start, and then reports
what the turn has used.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Final

import structlog

from activities.host.host import Accounts, Host
from activities.turns.logins import LoginChoice
from activities.turns.prepared_steps import PreparedStep, PreparedTurn
from activities.turns.turn_costs import note_costs
from septet.agents.runs.folders import Run
from septet.agents.runs.lease import Lease
from septet.agents.runs.usage import spending_of
from septet.agents.turns.follow import TurnProgress
from septet.agents.turns.request import TurnRequest
from septet.agents.turns.turn_attempt import Adopt, NeedsStart, TurnAttempt
from septet.agents.turns.turn_runs import TurnResult, TurnRuns
from septet.budgets.account import Caps, ReserveCall, SettleCall
from septet.budgets.turn_notes import HeldTurn
from septet.contracts.amounts import BudgetWait, Spending
from septet.errors import AgentApiUnavailableError, BudgetSpentError, SeptetError, SupersededError
from septet.repository_settings import Opening

_POLL_SECONDS: Final = 60.0
"""Seconds between two tries to start, for a workflow of an earlier release that does not wait for budgets."""
_UNLISTED_SECONDS: Final = 900.0
"""Seconds between two tries to start if the account cannot notify all of the many waiting turns."""

_AHEAD_SECONDS: Final = 1.0
"""For how many seconds the facts that were found before the first start count as current."""

_log = structlog.get_logger()


class OverBudgetError(BudgetSpentError):
    """A budget has no room for another start of an agent."""

    def __init__(self, wait: BudgetWait, *, is_listed: bool) -> None:
        after = _POLL_SECONDS if is_listed else _UNLISTED_SECONDS
        super().__init__(wait.message, remedy=wait.remedy, retry_after_seconds=after)
        self.wait = wait
        self.is_listed = is_listed


@dataclass(frozen=True, slots=True)
class _Answers:
    """The agent and login for the agent's next start, and the accounts that must allow this start."""

    request: TurnRequest
    """The turn's request, with an agent and a login that no usage limit pauses."""
    openings: list[Opening]
    held: HeldTurn
    """This host's note of the accounts that have reserved room for the turn."""
    requested_at: float


@dataclass(slots=True)
class TurnBudget:
    """The budgets of one turn in one attempt."""

    host: Host
    accounts: Accounts
    turn: PreparedTurn
    _ahead: _Answers | None = field(default=None, init=False)
    _granted: tuple[Spending, TurnRequest] | None = field(default=None, init=False)
    """The turn's use at the last reservation, and the request to which that reservation led."""

    async def request_ahead(self) -> None:
        """Choose the agent and find the accounts before the first start; ignore errors."""
        try:
            self._ahead = await self._request_answers()
        except (SeptetError, OSError) as error:
            _log.debug("not_requested_ahead", step=self._step, error=str(error))

    @asynccontextmanager
    async def reporting_failure(self) -> AsyncIterator[None]:
        """Report a turn's use to the budgets if the turn, which runs in the block, fails.

        If an agent continues, nothing is reported yet. After a success, the caller reports with `reporting` or
        `report`.
        """
        try:
            yield
        except SupersededError:
            raise
        except AgentApiUnavailableError as error:
            await self.report()
            if error.is_usage_limit:
                await self._wait_for_login(error)
            raise
        except (SeptetError, OSError):
            await self.report()
            raise

    @asynccontextmanager
    async def reporting(self, model: str | None) -> AsyncIterator[None]:
        """Run `report` in the background during the block, and wait for its end after the block."""
        report = asyncio.create_task(self.report(model))
        try:
            yield
        finally:
            await report

    async def reserve(self, so_far: Spending) -> TurnRequest:
        """Choose agent and login, reserve room in all accounts, and return the request with its limits.

        The caller holds the writer's lock. A repeated call with the same use `so_far` reserves nothing more. The
        accounts reserve in a fixed order, so that no two turns wait for each other. If one account has no room,
        all other reservations are undone.

        Raises:
            OverBudgetError: An account has no room.
            AgentApiUnavailableError: The usage limits of all logins are reached.
            SeptetError: The accounts cannot be reached now.
        """
        if self._granted is None or self._granted[0] != so_far:
            self._granted = (so_far, await self._reserve(so_far))
        return self._granted[1]

    async def _reserve(self, so_far: Spending) -> TurnRequest:
        ahead, self._ahead = self._ahead, None
        if ahead is None or time.monotonic() > ahead.requested_at + _AHEAD_SECONDS:
            ahead = await self._request_answers()
        caps, held = Caps(), ahead.held
        for opening in ahead.openings:
            call = ReserveCall(
                key=held.key,
                order_id=self.turn.request.key.workflow_id,
                step=self._step,
                limit=opening.account.limit,
                step_limit=opening.step_limit,
                so_far=so_far,
                wall_seconds=ahead.request.limits.wall_seconds,
            )
            grant = await self.accounts.reserve(opening.account, call, opens=opening.opens)
            if grant is None:
                continue
            if grant.wait is not None:
                await self._settle(held, so_far)
                raise OverBudgetError(grant.wait, is_listed=grant.is_listed)
            caps = caps.lowered(grant.caps)
            if opening.account.scope not in held.scopes or held.is_over:
                scopes = tuple(dict.fromkeys((*held.scopes, opening.account.scope)))
                held = held.model_copy(update={"scopes": scopes, "is_over": False})
                await self._note(held)
        return _within_caps(ahead.request, caps) if caps != Caps() else ahead.request

    async def _request_answers(self) -> _Answers:
        requested_at = time.monotonic()
        request, openings, held = await asyncio.gather(
            self._choice.choose(), self._find_openings(), self._find_note()
        )
        return _Answers(request, openings, held or self._held_turn(), requested_at)

    async def _find_openings(self) -> list[Opening]:
        """Return the accounts that must allow the start: those that exist, or that the reservation opens."""
        openings = self.turn.find_openings()
        return [*compress(openings, await asyncio.gather(*map(self._counts, openings)))]

    async def _counts(self, opening: Opening) -> bool:
        return opening.opens or await self.accounts.is_open(opening.account.scope)

    async def _wait_for_login(self, error: AgentApiUnavailableError) -> None:
        """Let the retry after `error` wait until any of the turn's agents can start."""
        try:
            error.retry_after_seconds = await self._choice.seconds_to_wait()
        except SeptetError as refusal:
            _log.warning("logins_not_asked", agent=self.turn.request.adapter.name, error=refusal.message)

    async def report(self, model: str | None = None) -> None:
        """Report the turn's use to the accounts after its agents have ended; a failed report is repeated later.

        This waits up to five seconds for a run's record that its supervisor has not yet written.

        Raises:
            SupersededError: A later attempt has begun; the later attempt reports.
        """
        self.turn.fence.lease.check()
        try:
            runs: list[Run] | None = None
            try:
                runs = await asyncio.to_thread(TurnRuns(self.turn.request).conclude)
            finally:
                await note_costs(self.host, self.turn, model, runs=runs)
            held = await self._find_note()
            if held is not None:
                await self._settle(held, await asyncio.to_thread(spending_of, runs))
        except (SeptetError, OSError) as error:
            _log.warning("budget_not_told", place=self.turn.place.order_id, error=str(error))
            await self._leave_to_next_reader()

    @property
    def _choice(self) -> LoginChoice:
        return LoginChoice(self.host, self.accounts, self.turn)

    async def _find_note(self) -> HeldTurn | None:
        return await asyncio.to_thread(self.host.held_turns.find, self.turn.place.order_id, self._held_turn().key)

    async def _settle(self, note: HeldTurn, use: Spending) -> None:
        for scope in note.scopes:
            await self.accounts.settle(scope, SettleCall(key=note.key, used=use))
        await asyncio.to_thread(self.host.held_turns.forget, self.turn.place.order_id, note.key)

    async def _leave_to_next_reader(self) -> None:
        try:
            held = await self._find_note()
            if held is not None:
                await self._note(held.model_copy(update={"is_over": True}))
        except OSError as error:
            _log.warning("held_turn_not_noted", place=self.turn.place.order_id, error=str(error))

    async def _note(self, turn: HeldTurn) -> None:
        await asyncio.to_thread(self.host.held_turns.note, self.turn.place.order_id, turn)

    def _held_turn(self) -> HeldTurn:
        key = self.turn.request.key
        return HeldTurn(workflow_id=key.workflow_id, run_id=key.run_id, activity_id=key.activity_id)

    @property
    def _step(self) -> str:
        return self.turn.call.name if isinstance(self.turn, PreparedStep) else self.turn.request.step


async def run_turn(
    request: TurnRequest,
    *,
    lease: Lease,
    on_progress: Callable[[TurnProgress], None],
    leave_work: Callable[[], Awaitable[object]],
    budget: TurnBudget | None = None,
) -> TurnResult:
    """Run a turn until it has a result, with as few agents as possible.

    After a cancel the agent continues, and the next attempt adopts it; `end_agent` ends it.

    Args:
        on_progress: Called at the start and every half second; its exceptions are raised.
        leave_work: Takes a rescue and restores the step's checkpoint; awaited before a new agent starts in a
            worktree with an earlier agent's work.
        budget: Reserves room before each start of an agent. It can change agent and login between starts.

    Raises:
        OverBudgetError: A budget has no room.
        SeptetError, OSError: The same errors as those of `TurnAttempt`.
    """
    attempt = TurnAttempt(request, lease, on_progress)
    async with nullcontext() if budget is None else budget.reporting_failure():
        while True:
            decision = await attempt.decide()
            if isinstance(decision, TurnResult):
                return decision
            if isinstance(decision, Adopt):
                result = await attempt.adopt(decision)
            else:
                result = await _start(attempt, decision, leave_work, budget)
            if result is not None:
                return result


async def _start(
    attempt: TurnAttempt, needs: NeedsStart, leave_work: Callable[[], Awaitable[object]], budget: TurnBudget | None
) -> TurnResult | None:
    """Reserve room and start an agent; the writer's lock is held meanwhile, and then passes to the supervisor."""
    with needs:
        if needs.leaves_work:
            await leave_work()
        request = attempt.request if budget is None else await budget.reserve(needs.so_far)
        if needs.changes_agent(request):
            await leave_work()
        return await attempt.start(needs, request)


def _within_caps(request: TurnRequest, caps: Caps) -> TurnRequest:
    """Return the request with `caps`: the agent ends when it has used these amounts.

    With a limit in dollars, no process stays warm, because a warm process keeps the options of its first turn.
    """
    turn = request.turn
    if caps.usd is not None:
        turn = replace(turn, max_usd=max(caps.usd, 0.000001), warm=False)
    return replace(request, turn=turn, caps=caps)
