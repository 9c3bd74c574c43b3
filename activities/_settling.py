"""The settling of a step: from an agent's answer to its proof, and from that to the result and a checkpoint."""

from dataclasses import dataclass
from typing import Any

import structlog

from activities._attempt import rescues_of
from activities._claims import Claim, RefusedError
from activities._prepared_steps import PreparedStep
from activities._proofs.prove import prove
from activities._results import answer_json, begin_result, bounded, bounded_text
from activities.host import Host
from activities.remote_checkpoints import KeptSession, keep
from septet.agents.turns.carry_out import TurnResult
from septet.answers.ladder import Answer, AnswerError
from septet.answers.steps import read_step_answer
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult
from septet.errors import EvidenceError
from septet.git.evidence import Evidence, gather
from septet.git.snapshots.scan import WorktreeScan
from septet.git.worktree_status import WorktreeStatus, save_worktree_status
from septet.system.preview import preview

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Settling:
    """Gives a step its verdict; all of it blocks, and holds the writer's lock meanwhile."""

    host: Host
    prepared: PreparedStep

    def settle(self, turn: TurnResult) -> StepResult:
        """Read the answer, hold it against the evidence, and keep a checkpoint.

        Raises:
            SupersededError, HaltedError: A later attempt has begun, or this one was cancelled.
            WorkspaceBusyError: Somebody else holds the writer's lock.
        """
        with self.prepared.fence.lease.held():
            scan = self._scan()
            evidence = gather(self.prepared.place, self.prepared.began_at, toured=scan)
            result = begin_result(self.prepared.call, turn, evidence.files_changed)
            try:
                answer = self.read_answer(turn)
            except AnswerError as error:
                return self._leave_unread(result, error.reasons, evidence.standing, scan)
            return self.judge(result, answer, evidence, scan)

    def _scan(self) -> WorktreeScan | None:
        """Walk over the worktree once for all; not where the repository's own checks may write into it later."""
        checks = self.prepared.repository_settings.checks
        is_checked = self.prepared.call.step is Step.CREATE_COMMIT and checks
        return None if is_checked else self.host.scan(self.prepared.place)

    def read_answer(self, turn: TurnResult) -> Answer[Any]:
        """Return the step's answer.

        Raises:
            AnswerError: It could not be read.
        """
        call, outcome = self.prepared.call, turn.outcome
        answer = read_step_answer(
            call.step, outcome.text, structured=outcome.structured, in_pipeline=bool(call.pipeline)
        )
        _log.info(
            "result_text_extracted",
            step=call.step,
            parsed_by=answer.parsed_by,
            length=len(outcome.text or ""),
            preview=preview(answer.value.result_text),
        )
        return answer

    def judge(
        self,
        result: StepResult,
        answer: Answer[Any],
        evidence: Evidence,
        scan: WorktreeScan | None = None,
    ) -> StepResult:
        """Hold an answer against the evidence: done and a checkpoint, or not done and a rescue with the reason."""
        step, call, place, fence = self.prepared, self.prepared.call, self.prepared.place, self.prepared.fence
        result = result.model_copy(update={"parsed_by": answer.parsed_by, "result_json": answer_json(answer)})
        try:
            with fence.halting():
                claim = Claim(call, place, answer.value, evidence, step.repository_settings, fence, scan)
                proof = prove(self.host, claim)
        except EvidenceError as error:
            verdict = Verdict.REFUSED if isinstance(error, RefusedError) else Verdict.UNPROVEN
            return self.reject(result, verdict, (str(error),))
        checkpoint = self._checkpoint(f"{call.step} is done", proof.standing or evidence.standing, scan)
        session = result.session_id if step.workspace.lane else None  # a lane's next work order goes on with it
        return self.complete(
            result,
            Verdict.DONE,
            result_text=bounded_text(proof.result_text),
            commit_sha=proof.commit_sha,
            plan_sha256=proof.plan_sha256,
            outline=proof.outline,
            checkpoint=checkpoint,
            warnings=bounded((*result.warnings, *answer.warnings, *proof.warnings, *self._keep(session))),
        )

    def _leave_unread(
        self,
        result: StepResult,
        reasons: tuple[str, ...],
        standing: WorktreeStatus | None,
        scan: WorktreeScan | None,
    ) -> StepResult:
        """Keep a checkpoint and the session for a finalizer; without a session nobody can be asked again."""
        if result.session_id is None:
            return self.reject(result, Verdict.UNPARSED, reasons)
        checkpoint = self._checkpoint("the answer was not read", standing, scan)
        warnings = bounded((*result.warnings, *self._keep(result.session_id)))
        return self.complete(
            result, Verdict.UNPARSED, reasons=bounded(reasons), checkpoint=checkpoint, warnings=warnings
        )

    def _checkpoint(self, reason: str, standing: WorktreeStatus | None, scan: WorktreeScan | None) -> str | None:
        """Take a checkpoint and return its name; where a walk tells, how the worktree stands is noted with it."""
        place = self.prepared.place
        checkpoint = self.host.snapshot(place, "checkpoint", reason, self.prepared.call.step, scan)
        if checkpoint is None:
            return None
        if standing is not None and scan is not None:
            save_worktree_status(place, checkpoint.commit, standing)
        return checkpoint.name

    def _keep(self, session_id: str | None) -> tuple[str, ...]:
        """Bring the checkpoint to where it outlives this host, with a session; a failure is a warning."""
        session = KeptSession(self.prepared.workspace.agent, session_id) if session_id else None
        with self.prepared.fence.halting():
            return keep(self.host, self.prepared.place, session)

    def reject(self, result: StepResult, verdict: Verdict, reasons: tuple[str, ...]) -> StepResult:
        """Keep what was done in a rescue and say why it does not count."""
        step = self.prepared.call.step
        self.host.rescue(self.prepared.place, reasons[0][:200], step)
        shown = [preview(reason) for reason in reasons]
        _log.warning("step_not_done", step=step, verdict=verdict, reasons=shown)
        return self.complete(result, verdict, reasons=bounded(reasons))

    def complete(self, result: StepResult, verdict: Verdict, **facts: object) -> StepResult:
        """Give the verdict, with all that was kept since the step began."""
        return result.model_copy(update={"verdict": verdict, "rescues": rescues_of(self.prepared), **facts})
