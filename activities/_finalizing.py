"""The settling of a step whose answer was not read: the finalizer's answer completes what is known of it."""

from dataclasses import dataclass
from typing import Final

from activities._prepared_steps import PreparedStep
from activities._results import begin_again, bounded
from activities._settling import Settling
from activities.host import Host
from septet.agents.turns.carry_out import TurnResult
from septet.answers.ladder import AnswerError
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, StepResult
from septet.git.evidence import gather

_UNDONE: Final = "The finalizer changed the worktree, which was undone: {} holds what it did."


@dataclass(frozen=True, slots=True)
class Finalizing:
    """Completes the result of an unread try; all of it blocks, and holds the writer's lock meanwhile."""

    host: Host
    prepared: PreparedStep

    def settle(self, finalizing: FinalizeCall, turn: TurnResult | None, failure: str = "") -> StepResult:
        """Complete the unread try's result by the finalizer's answer; the second question's failure is the last.

        Args:
            finalizing: What was asked.
            turn: What the finalizer brought; `None` where no agent was started.
            failure: Why the finalizer gave no answer, where its agent failed.

        Raises:
            SupersededError, HaltedError: A later attempt has begun, or this one was cancelled.
            WorkspaceBusyError: Somebody else holds the writer's lock.
        """
        settling = Settling(self.host, self.prepared)
        with self.prepared.fence.lease.held():
            try:
                answer = settling.read_answer(turn) if turn is not None and not failure else None
                reasons: tuple[str, ...] = (failure,)
            except AnswerError as error:
                answer, reasons = None, error.reasons
            result = self._with_finalizer(finalizing.result, turn)
            if answer is not None:
                result = result.model_copy(update={"recovered_by": "finalizer"})
                return settling.judge(result, answer, gather(self.prepared.place, self.prepared.began_at))
            if finalizing.attempt > 1:
                return settling.reject(result, Verdict.UNPARSED, reasons)
            return settling.complete(
                result, Verdict.UNPARSED, reasons=bounded(reasons), checkpoint=finalizing.result.checkpoint
            )

    def _with_finalizer(self, unread: StepResult, turn: TurnResult | None) -> StepResult:
        """Add what the finalizer used to the facts of the step; what it did to the worktree is undone."""
        result = begin_again(unread)
        if turn is not None:
            seconds = round(turn.outcome.duration_seconds or 0.0, 3)
            used = {"usage": result.usage.plus(turn.usage), "duration_seconds": result.duration_seconds + seconds}
            result = result.model_copy(update=used)
        return result.model_copy(update={"warnings": bounded((*result.warnings, *self._undo()))})

    def _undo(self) -> tuple[str, ...]:
        """Return the worktree to what it was before the finalizer, and the warning where it was another."""
        place, start = self.prepared.place, self.prepared.starts_from
        if not start or not self.host.differs(place, start):
            return ()
        rescue = self.host.return_to(place, start, "what the finalizer changed", self.prepared.call.step)
        return (_UNDONE.format(rescue.snapshot if rescue else "no snapshot, for nothing was left of it"),)
