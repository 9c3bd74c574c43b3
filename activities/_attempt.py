"""One attempt at a step: prepared and guarded, it carries a turn out, and keeps what was done where it fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from temporalio import activity

from activities._between_steps import see_untouched
from activities._guard import AttemptFailedError, WorkEndedError, guarding
from activities._prepared_steps import PreparedStep
from activities._rescues import rescues_of
from activities._results import add_turn, begin_again, begin_result, with_reasons
from activities._turn_budget import TurnBudget
from activities.attempts import Heartbeats, heartbeating
from activities.failures import failure, translating_failures
from activities.host import Host
from septet.agents.runs.refusals import record_refusals
from septet.agents.turns.carry_out import carry_out, last_result
from septet.agents.turns.guest_home import return_login
from septet.agents.turns.turn_runs import TurnResult
from septet.contracts.facts import FileChange, Usage
from septet.contracts.names import Verdict
from septet.contracts.steps import StepResult
from septet.errors import LockHeldError, SeptetError, SnapshotError, WorkspaceBusyError
from septet.git.evidence.evidence import gather
from septet.system.threads import shielded_thread

C = TypeVar("C")

_ANEW: Final = "the step starts again from its checkpoint"


@dataclass(slots=True)
class StepAttempt:
    """One attempt at a step, or at its finalizer."""

    host: Host
    prepared_step: PreparedStep
    heartbeats: Heartbeats
    result: StepResult = field(init=False)
    """Given by whoever settles it, and by the attempt itself where a person has ended the work."""
    budget: TurnBudget | None = field(init=False)
    """That of the turn, where this host has accounts to ask."""
    told: tuple[str, ...] = field(default=(), init=False)
    """What was changed before the step, and was put back."""

    def __post_init__(self) -> None:
        """Take the turn's budget."""
        accounts = self.host.accounts
        self.budget = TurnBudget(self.host, accounts, self.prepared_step) if accounts is not None else None

    async def carry_out(self, *, begins_step: bool = False) -> TurnResult:
        """Carry the turn out; an agent that has to begin anew finds the worktree as the step found it.

        Where the turn begins a step, what was changed since the step before is put back first.
        """
        if begins_step:
            await self._begin()
        place, step, start = self.prepared_step.place, self.prepared_step.call.name, self.prepared_step.starts_from
        rescue = partial(self.host.rescue, place, _ANEW, step)
        if start:
            rescue = partial(self.host.return_to, place, start, _ANEW, step)
        turn = partial(
            carry_out,
            self.prepared_step.request,
            lease=self.prepared_step.fence.lease,
            on_progress=self.heartbeats.progress.append,
            before_rerun=partial(shielded_thread, self.host.threads.disk, rescue),
        )
        result = await (turn() if self.budget is None else self.budget.carry_out(turn))
        if self.prepared_step.call.settles and result.recovered_by == "read":
            result = replace(result, usage=Usage(), duration_seconds=0.0, agent_starts=0, recovered_by=None)
        return result

    async def _begin(self) -> None:
        """See that the worktree is untouched, and meanwhile ask what the start of the first agent depends on."""
        seeing = shielded_thread(self.host.threads.disk, see_untouched, self.host, self.prepared_step)
        if self.budget is None or activity.info().attempt > 1:
            self.told = await seeing
        else:
            self.told, _ = await asyncio.gather(seeing, self.budget.ask_ahead())

    async def end(self, verdict: Verdict, reason: str) -> StepResult:
        """Keep what was done in a rescue, and return what is known of the step.

        Raises:
            SupersededError: A later attempt has begun, and what is there is its own.
        """
        disk = self.host.threads.disk
        self.prepared_step.fence.lease.check()
        last = await shielded_thread(disk, _last_result, self.prepared_step)
        if self.budget is not None:
            await self.budget.settle(last.outcome.model if last is not None else None)
        return await shielded_thread(disk, _rescued_result, self.host, self.prepared_step, last, verdict, reason)


@asynccontextmanager
async def attempting(
    host: Host, prepare: Callable[[Host, C], PreparedStep], call: C
) -> AsyncIterator[StepAttempt]:
    """Prepare a step and guard its attempt; where it fails for good or a person cancels, what was done is kept.

    Raises:
        ApplicationError: The step could not be taken; its details name the remedy and what is known of it.
    """
    with translating_failures(host.state.root):
        async with heartbeating(host.attempts) as heartbeats:
            attempt = StepAttempt(host, await shielded_thread(host.threads.disk, prepare, host, call), heartbeats)
            try:
                async with guarding(host, attempt.prepared_step):
                    yield attempt
            except WorkEndedError as ended:
                attempt.result = await attempt.end(Verdict.CANCELLED, str(ended))
            except AttemptFailedError as failed:
                result = await attempt.end(Verdict.FAILED, failed.error.message)
                raise failure(failed.error, result) from failed.__cause__


def _rescued_result(
    host: Host, prepared_step: PreparedStep, last: TurnResult | None, verdict: Verdict, reason: str
) -> StepResult:
    """Keep what was done, and tell what is known; neither hides the other, nor the reason."""
    prepared_step.fence.lease.check()
    if last is not None:
        record_refusals(prepared_step.call, last.run)
    return_login(prepared_step.request)
    reasons = [reason]
    try:
        host.rescue(prepared_step.place, reason[:200], prepared_step.call.name)
    except (SnapshotError, LockHeldError, OSError) as error:
        reasons.append(str(error))
    if prepared_step.earlier is not None:
        result = add_turn(begin_again(prepared_step.earlier), last)
    else:
        result = begin_result(prepared_step.call, last, _changes(prepared_step))
    rescues = rescues_of(prepared_step.request.runtime.runs, prepared_step.call, prepared_step.place, host.id)
    return with_reasons(result, verdict, tuple(reasons)).model_copy(update={"rescues": rescues})


def _last_result(prepared_step: PreparedStep) -> TurnResult | None:
    """Return what the last agent came to; nothing, where nobody can look, or its record is not there yet."""
    try:
        return last_result(prepared_step.request)
    except (OSError, WorkspaceBusyError):
        return None


def _changes(prepared_step: PreparedStep) -> tuple[FileChange, ...]:
    """Return what git says changed; nothing, where the agent has broken its repository."""
    try:
        return gather(prepared_step.place, prepared_step.began_at).files_changed
    except (SeptetError, OSError):
        return ()
