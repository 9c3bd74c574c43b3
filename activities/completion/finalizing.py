"""Judge a step whose answer could not be read: the finalizer's answer completes the step's result."""

from functools import partial
from typing import Final

from activities.completion.beside_plan import finish_return
from activities.completion.judgement import Completion, Judge, read_answer
from activities.host.host import Host
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_turn, add_warnings, begin_again, with_reasons
from septet.agents.runs.logs import recording_refusals
from septet.agents.turns.turn_runs import TurnResult
from septet.answers.ladder import AnswerError
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import FinalizeCall, StepResult
from septet.errors import AgentApiError, AgentError
from septet.git.evidence.evidence import gather

_UNDONE: Final = "The finalizer changed the worktree. Its change was undone and is kept in {}."


def judge_finalizer(host: Host, step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult) -> StepResult:
    """Complete a step's result with the finalizer's answer; hold the writer's lock meanwhile.

    Raises:
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    with recording_refusals(step.call, turn.run), step.fence.lease.hold() as writer_lock:
        try:
            answer = read_answer(host, step.call, turn)
        except AnswerError as error:
            return _leave_unanswered(host, step, finalizing, turn, error.reasons)
        result = add_turn(begin_again(finalizing.result), turn)
        is_plan = step.call.step is Step.FIND_PLAN_FILE
        if not (is_plan and finish_return(host, step, turn.run.name)):
            result = _without_edits(host, step, result)
        evidence = gather(step.place, step.began_at)
        guests = partial(host.guests, step.place, turn.run.checks, writer_lock)
        judge = Judge(host, step, evidence, guests, turn.run.name)
        return judge.judge(result.model_copy(update={"recovered_by": "finalizer"}), answer)


def leave_failed_finalizer(
    host: Host, step: PreparedStep, finalizing: FinalizeCall, turn: TurnResult | None, error: AgentError
) -> StepResult:
    """Return the result of a step whose finalizer's agent failed; hold the writer's lock meanwhile.

    A session that the model API refuses gets no other prompt: the step's second try begins another session.

    Raises:
        SupersededError: A later attempt has begun.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    with step.fence.lease.hold():
        if isinstance(error, AgentApiError):
            without_session = finalizing.result.model_copy(update={"session_id": None})
            finalizing = finalizing.model_copy(update={"attempt": 2, "result": without_session})
        return _leave_unanswered(host, step, finalizing, turn, (error.message,))


def _leave_unanswered(
    host: Host,
    step: PreparedStep,
    finalizing: FinalizeCall,
    turn: TurnResult | None,
    reasons: tuple[str, ...],
) -> StepResult:
    """Return the result of a step without an answer; one more request, with other words, may follow."""
    result = _without_edits(host, step, add_turn(begin_again(finalizing.result), turn))
    completion = Completion(host, step)
    if finalizing.attempt > 1:
        return completion.reject(result, Verdict.UNPARSED, reasons)
    return completion.complete(with_reasons(result, Verdict.UNPARSED, reasons), finalizing.result.checkpoint)


def _without_edits(host: Host, step: PreparedStep, result: StepResult) -> StepResult:
    """Undo the finalizer's changes to the worktree; return the result, with a warning if there were changes."""
    place, start = step.place, step.starts_from
    if not start or not host.snapshots.differs(place, start):
        return result
    rescue = host.snapshots.return_to(place, start, "what the finalizer changed", step.call.name)
    warning = _UNDONE.format(rescue.snapshot if rescue else "no snapshot, for nothing was left of it")
    return add_warnings(result, warning)
