"""Settle a step whose answer was not read: the finalizer's answer completes the step's result."""

from functools import partial
from typing import Final

from activities.completion.beside_plan import finish_return
from activities.completion.settling import Settling, complete, read_answer, reject
from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_turn, add_warnings, begin_again, with_reasons
from septet.agents.runs.network import recording_refusals
from septet.agents.turns.turn_runs import TurnResult
from septet.answers.ladder import AnswerError
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import FinalizeCall, StepResult
from septet.errors import AgentApiError, AgentError
from septet.git.evidence.evidence import gather

_UNDONE: Final = "The finalizer changed the worktree. Its change was undone and is kept in {}."


def settle_finalizer(
    host: Host, prepared_step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult
) -> StepResult:
    """Complete the unread try's result by the finalizer's answer; the writer's lock is held meanwhile.

    Raises:
        SupersededError, HaltedError: A later attempt has begun, or this one was cancelled.
        WorkspaceBusyError: Somebody else holds the writer's lock.
    """
    with recording_refusals(prepared_step.call, turn.run), prepared_step.fence.lease.hold() as writer_lock:
        try:
            answer = read_answer(host, prepared_step.call, turn)
        except AnswerError as error:
            return _leave_unanswered(host, prepared_step, finalizing, turn, error.reasons)
        result = add_turn(begin_again(finalizing.result), turn)
        is_plan = prepared_step.call.step is Step.FIND_PLAN_FILE
        if not (is_plan and finish_return(host, prepared_step, turn.run.name)):
            result = _without_edits(host, prepared_step, result)
        evidence = gather(prepared_step.place, prepared_step.began_at)
        guests = partial(host.guests, prepared_step.place, turn.run.checks, writer_lock)
        settling = Settling(host, prepared_step, evidence, guests, turn.run.name)
        return settling.judge(result.model_copy(update={"recovered_by": "finalizer"}), answer)


def settle_failed_finalizer(
    host: Host, prepared_step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult | None, error: AgentError
) -> StepResult:
    """Leave the step without an answer, for the finalizer's agent failed; the writer's lock is held meanwhile.

    A session that the model API refuses gets no other prompt: the step's second try begins another session.

    Raises:
        SupersededError: A later attempt has begun.
        WorkspaceBusyError: Somebody else holds the writer's lock.
    """
    with prepared_step.fence.lease.hold():
        if isinstance(error, AgentApiError):
            without_session = finalizing.result.model_copy(update={"session_id": None})
            finalizing = finalizing.model_copy(update={"attempt": 2, "result": without_session})
        return _leave_unanswered(host, prepared_step, finalizing, turn, (error.message,))


def _leave_unanswered(
    host: Host,
    prepared_step: PreparedStep,
    finalizing: FinalizeCall,
    turn: TurnResult | None,
    reasons: tuple[str, ...],
) -> StepResult:
    """Leave the step for another, differently worded request; the second request is the last."""
    result = _without_edits(host, prepared_step, add_turn(begin_again(finalizing.result), turn))
    if finalizing.attempt > 1:
        return reject(host, prepared_step, result, Verdict.UNPARSED, reasons)
    return complete(
        host, prepared_step, with_reasons(result, Verdict.UNPARSED, reasons), finalizing.result.checkpoint
    )


def _without_edits(host: Host, prepared_step: PreparedStep, result: StepResult) -> StepResult:
    """Return the worktree to its state before the finalizer, with a warning if the finalizer changed it."""
    place, start = prepared_step.place, prepared_step.starts_from
    if not start or not host.differs(place, start):
        return result
    rescue = host.return_to(place, start, "what the finalizer changed", prepared_step.call.name)
    warning = _UNDONE.format(rescue.snapshot if rescue else "no snapshot, for nothing was left of it")
    return add_warnings(result, warning)
