"""Judge a step: read an agent's answer, prove the answer, and return the result with a checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from activities.host.claims import (
    AnyClaim,
    Claim,
    EarlierStepError,
    Proof,
    RefusedError,
    UnclearAnswerError,
    UnreadError,
)
from activities.host.host import Host
from activities.host.remote_checkpoints import KeptSession, keep
from activities.runner.leftovers import (
    MAKES_WORK,
    NO_WORK,
    WorkElsewhere,
    beside_the_work,
    end_return,
    find_elsewhere,
    finish_return,
    how_to_get,
    leave_plan_alone,
    take_clone,
)
from activities.steps.table import PROOFS
from activities.turns.prepared_steps import PreparedStep
from activities.turns.results import add_warnings, begin_result, with_answer, with_proof, with_reasons
from septet.agents.outcomes.outcome import bound_answer
from septet.agents.runs.logs import recording_refusals
from septet.agents.sandbox.guest_run import GuestRunner
from septet.agents.turns.turn_runs import TurnResult
from septet.answers.ladder import Answer, AnswerError
from septet.answers.reasoning import ends_in_printed_call
from septet.answers.steps import read_pieces, read_step_answer
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError
from septet.git.evidence.evidence import Evidence, gather
from septet.git.evidence.worker_keys import FindingsError
from septet.git.snapshots.scan import WorktreeScan
from septet.git.vault.facts import Snapshot
from septet.git.vault.survey import OVER_LIMIT
from septet.system.masking import preview
from septet.system.text import cut, name_some

_log = structlog.get_logger()
_LEAVE_FILES: Final = frozenset(
    {Step.CLASSIFY_ISSUE, Step.BUILD_PLAN, Step.FIND_PLAN_FILE, Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN}
)
"""The steps that must leave no changes in the worktree outside `.git`."""
_PRINTED_CALL: Final = (
    "The last message ends in a tool call that was printed as text, so nobody carried it out and the work is not "
    "done: call the tool itself."
)


def judge_turn(host: Host, step: PreparedStep, turn: TurnResult) -> StepResult:
    """Read the answer, prove it, and take a checkpoint, while holding the writer's lock.

    Raises:
        SupersededError, HaltedError: A later attempt has begun, or this attempt was cancelled.
        WorkspaceBusyError: Another process holds the writer's lock.
    """
    with recording_refusals(step.call, turn.run), step.fence.lease.hold() as writer_lock:
        if step.call.step is Step.FIND_PLAN_FILE:
            finish_return(host, step, turn.run.name)
        lost, taken = take_clone(host, step)
        scan = host.snapshots.scan(step.place)  # raises if the agent has left more than the limit
        evidence = gather(step.place, step.began_at, scan.survey)
        judge = Judge(
            host,
            step,
            evidence,
            guests=lambda: host.guests(step.place, turn.run.checks, writer_lock),
            run=turn.run.name,
            scan=scan,
        )
        result = add_warnings(begin_result(step.call, turn, evidence.files_changed), *taken)
        if lost:
            return judge.complete(with_reasons(result, Verdict.UNPROVEN, (lost,)), checkpoint=None)
        if turn.outcome.structured is None and ends_in_printed_call(turn.outcome.text or ""):
            return judge.reject(result, Verdict.UNPROVEN, (_PRINTED_CALL,))
        try:
            answer = read_answer(host, step.call, turn)
        except AnswerError as error:
            return judge.leave_unread(result, error.reasons)
        return judge.judge(result, answer)


def read_answer(host: Host, call: StepCall, turn: TurnResult) -> Answer[Any]:
    """Return the step's answer; it has a warning if the agent's answer was too long to be read whole.

    Raises:
        AnswerError: The answer is unreadable.
    """
    outcome, notes = bound_answer(turn.outcome, host.settings.answer_limit_kib)
    name, in_pipeline = call.name, bool(call.pipeline)
    try:
        answer = read_step_answer(name, outcome.text, structured=outcome.structured, in_pipeline=in_pipeline)
    except AnswerError as error:
        in_pieces = read_pieces(name, outcome.pieces, in_pipeline=in_pipeline)
        if in_pieces is None:
            why = error.reasons if (outcome.text or "").strip() or not outcome.message else (outcome.message,)
            raise AnswerError((*why, *notes)) from None
        answer = in_pieces
    _log.info(
        "result_text_extracted",
        step=name,
        parsed_by=answer.parsed_by,
        length=len(outcome.text or ""),
        preview=preview(answer.value.result_text),
    )
    return replace(answer, warnings=(*notes, *answer.warnings)) if notes else answer


@dataclass(frozen=True, slots=True)
class Completion:
    """Completes the result of a step with its checkpoint and its rescues."""

    host: Host
    step: PreparedStep

    def complete(self, result: StepResult, checkpoint: str | None) -> StepResult:
        """Return the result with the checkpoint and with all rescues since the step began."""
        rescues = self.host.snapshots.rescues_of(self.step.place, self.step.call)
        return result.model_copy(update={"checkpoint": checkpoint, "rescues": rescues})

    def reject(
        self, result: StepResult, verdict: Verdict, reasons: tuple[str, ...], work: WorkElsewhere = NO_WORK
    ) -> StepResult:
        """Take a rescue; return the result with verdict, rescues, reasons, and a note on where `work` is."""
        name = self.step.call.name
        rescue = self.host.snapshots.rescue(self.step.place, cut(reasons[0], 200), name)
        reasons += how_to_get(work, rescue, self.step.call)
        _log.warning("step_not_done", step=name, verdict=verdict, reasons=[preview(reason) for reason in reasons])
        return self.complete(with_reasons(result, verdict, reasons), checkpoint=None)


@dataclass(frozen=True, slots=True)
class Judge(Completion):
    """Decides a step's verdict by git's evidence; the caller holds the writer's lock."""

    evidence: Evidence
    guests: Callable[[], GuestRunner]
    run: str
    """The agent run that gave the answer; empty if no agent ran."""
    scan: WorktreeScan | None = None

    def judge(self, result: StepResult, answer: Answer[Any]) -> StepResult:
        """Prove an answer; take a checkpoint after a proof, else a rescue; an unclear answer counts as unread."""
        call, unread, result = self.step.call, result, with_answer(result, answer)
        try:
            with self.step.fence.halt.over():
                proof = PROOFS[call.name](self.host, self._claim(answer))
            kept = self._leave_plan_alone(proof) if proof.plan_sha256 else None
        except UnclearAnswerError as error:
            return self.leave_unread(unread, (str(error),))
        except EarlierStepError as error:
            checkpoint, lacking = self._checkpoint(f"back to {error.step.value}")
            result = add_warnings(with_reasons(result, Verdict.UNPROVEN, (str(error),)), *lacking)
            result = result.model_copy(update={"goes_back_to": error.step})
            return self.complete(result, checkpoint)
        except UnreadError as error:
            checkpoint, lacking = self._checkpoint("its push waits for a reader")
            warnings = (*lacking, *self._keep(result.agent, None))
            result = add_warnings(with_reasons(result, Verdict.UNPROVEN, (str(error),)), *warnings)
            result = result.model_copy(update={"unread": error.digest})
            return self.complete(result, checkpoint)
        except EvidenceError as error:
            verdict = Verdict.REFUSED if isinstance(error, RefusedError) else Verdict.UNPROVEN
            if isinstance(error, FindingsError):
                result = result.model_copy(update={"findings": error.findings})
            work = find_elsewhere(self.host, self.step, self.evidence)
            return self.reject(result, verdict, (str(error),), work)
        checkpoint, lacking = kept or self._checkpoint(f"{call.name} is done")
        session = result.session_id if call.shares_session else None  # a later turn continues it
        kept_session = self._keep(result.agent, session)
        beside = beside_the_work(self.step, self.evidence.head) if call.step in MAKES_WORK else ()
        warnings = (*answer.warnings, *proof.warnings, *lacking, *beside, *kept_session)
        result = with_proof(result, proof, warnings)
        return self.complete(result, checkpoint)

    def leave_unread(self, result: StepResult, reasons: tuple[str, ...]) -> StepResult:
        """Return a result that a finalizer can complete, with a checkpoint and a saved session.

        Without a session, the step is rejected.
        """
        if result.session_id is None:
            return self.reject(result, Verdict.UNPARSED, reasons)
        checkpoint, lacking = self._checkpoint("the answer was not read")
        result = add_warnings(result, *lacking, *self._keep(result.agent, result.session_id))
        return self.complete(with_reasons(result, Verdict.UNPARSED, reasons), checkpoint)

    def _claim(self, answer: Answer[Any]) -> AnyClaim:
        step = self.step
        return Claim(
            call=step.call,
            place=step.place,
            began_at=step.began_at,
            answer=answer.value,
            evidence=self.evidence,
            repository_settings=step.repository_settings,
            fence=step.fence,
            guests=self.guests,
        )

    def _leave_plan_alone(self, proof: Proof) -> tuple[str | None, tuple[str, ...]]:
        """Undo all changes of the worktree except the plan; return the checkpoint's name, and warnings."""
        step = self.step
        reason = f"{step.call.name} is done"
        current, told = self.host.snapshots.checkpoint_after_guest(step.place, reason, step.call.name, self.scan)
        if current is not None and leave_plan_alone(self.host, step, self.run, proof.result_text, current):
            current, _ = self.host.snapshots.checkpoint_after_guest(step.place, reason, step.call.name)
        end_return(step.place)
        rescues = self.host.snapshots.rescues_of(step.place, step.call)
        told += tuple(rescue.telling for rescue in rescues if rescue.is_left_by_planner)
        return (current.name, (*told, *_lacking(current))) if current is not None else (None, told)

    def _checkpoint(self, reason: str) -> tuple[str | None, tuple[str, ...]]:
        step = self.step
        scan = self.scan if step.call.step in _LEAVE_FILES and step.call.rework is None else None
        checkpoint, told = self.host.snapshots.checkpoint_after_guest(step.place, reason, step.call.name, scan)
        return (checkpoint.name, (*told, *_lacking(checkpoint))) if checkpoint is not None else (None, told)

    def _keep(self, agent: str, session_id: str | None) -> tuple[str, ...]:
        session = KeptSession(agent, session_id) if session_id else None
        with self.step.fence.halt.over():
            return keep(self.host, self.step.place, session)


def _lacking(checkpoint: Snapshot) -> tuple[str, ...]:
    lacks = [f"{each.path} ({each.reason})" for each in checkpoint.left_out if each.reason != OVER_LIMIT]
    return (f"Neither snapshots nor commits hold {name_some(lacks, 5)}.",) if lacks else ()
