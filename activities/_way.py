"""The way of one step: prompt, agent, outcome, answer, evidence, checkpoint."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from activities._agents_end import end_agents_of
from activities._ends import CANCELLED as CANCELLED_ORDER
from activities._ends import end_of_the_work
from activities._failures import failure, failures_told, is_tried_again
from activities._heartbeats import Heartbeats, heartbeating, shielded_thread
from activities._keeping import KeptSession, keep
from activities._mirror import with_mirror_mended
from activities._paused import leave_paused_or_reset
from activities._prepared_steps import AnyClaim, Claim, PreparedStep, ending_errand, finalizer_errand, prepare_step
from activities._proof import Proof, RefusedError
from activities._rescues import rescues_since
from activities._results import answer_json, bounded, bounded_text, facts_of
from activities._room import Host
from septet.agents.clis.endings import CANCELLED
from septet.agents.turns.carry_out import TurnResult, carry_out, last_result
from septet.answers.ladder import Answer, AnswerError
from septet.answers.steps import read_step_answer
from septet.contracts.facts import FileChange, Rescue
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.errors import (
    AgentGaveUpError,
    AgentLimitError,
    EvidenceError,
    SeptetError,
    SnapshotError,
    SupersededError,
)
from septet.git.evidence import Evidence, gather
from septet.git.snapshots.scan import WorktreeScan
from septet.git.worktree_status import WorktreeStatus, save_worktree_status
from septet.system.disk import diagnosed
from septet.system.preview import preview

Prove = Callable[[AnyClaim], Proof]
Work = Callable[[PreparedStep, Heartbeats], Coroutine[Any, Any, StepResult]]

_UNDONE = "The finalizer changed the worktree, which was undone: {} holds what it did."

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StepRunner:
    """What all seven steps have in common; what differs is the command and the proof."""

    host: Host

    async def walk(self, call: StepCall, prove: Prove) -> StepResult:
        """Run the agent, read its answer, hold it against the evidence, and keep a checkpoint.

        Raises:
            ApplicationError: The step could not be taken; its details name the remedy and what is known of it.
        """

        async def work(errand: PreparedStep, pulse: Heartbeats) -> StepResult:
            carried = await self._carried(errand, pulse)
            return await errand.gate.as_writer(partial(self._settled, errand, carried, prove))

        return await self._guarded(partial(prepare_step, self.host, call), work)

    async def finalize(self, asked: FinalizeCall, prove: Prove) -> StepResult:
        """Ask the step's session for its answer alone, and complete the step's result with it.

        Raises:
            ApplicationError: The session could not be asked; its details name the remedy and what is known.
        """

        async def work(errand: PreparedStep, pulse: Heartbeats) -> StepResult:
            try:
                carried = await self._carried(errand, pulse)
            except (AgentGaveUpError, AgentLimitError) as error:
                last = await shielded_thread(last_result, errand.request)
                kept = partial(self._not_finalized, errand, asked, last, (error.message,))
                return await errand.gate.as_writer(kept)
            return await errand.gate.as_writer(partial(self._finalized, errand, asked, carried, prove))

        return await self._guarded(partial(finalizer_errand, self.host, asked), work)

    async def end(self, call: StepCall) -> StepResult:
        """End what works for a cancelled work order, whose step could not do so itself.

        Raises:
            ApplicationError: The workspace is not here, or the agent could not be ended.
        """
        with failures_told(self.host.state.root):
            async with heartbeating():
                # First of all, and also where a full disk takes no note of this attempt.
                await end_agents_of(self.host.means.runs, call.workspace, CANCELLED)
                return await self._ended(await shielded_thread(ending_errand, self.host, call), CANCELLED_ORDER)

    async def _guarded(self, prepare: Callable[[], PreparedStep], work: Work) -> StepResult:
        """Do the work; where it fails for good or a person cancels, keep what was done in a rescue."""
        with failures_told(self.host.state.root):
            async with heartbeating() as pulse:
                errand = await shielded_thread(prepare)
                try:
                    return await work(errand, pulse)
                except asyncio.CancelledError:
                    why = await end_of_the_work()
                    if why is None:
                        await leave_paused_or_reset(errand.request)
                        _log.info("attempt_left", step=errand.call.step)
                        raise
                    return await self._ended(errand, why)
                except SupersededError as superseded:
                    _log.warning("attempt_superseded", step=errand.call.step, why=superseded.message)
                    raise
                except (SeptetError, OSError) as caught:
                    error = diagnosed(caught, self.host.state.root)
                    error = await shielded_thread(with_mirror_mended, self.host, errand.place, error)
                    if is_tried_again(error):
                        raise failure(error) from caught
                    result = await shielded_thread(self._over, errand, Verdict.FAILED, error.message)
                    raise failure(error, result) from caught

    async def _carried(self, errand: PreparedStep, pulse: Heartbeats) -> TurnResult:
        """Carry the turn out; an agent that has to begin anew finds the worktree as the step found it."""
        reason = "the step begins anew from its checkpoint"
        rescue = partial(self.host.rescue, errand.place, reason, errand.call.step)
        if errand.starts_from:
            rescue = partial(self.host.return_to, errand.place, errand.starts_from, reason, errand.call.step)
        lease = errand.gate.lease
        return await carry_out(
            errand.request, lease=lease, on_progress=pulse.follow, before_rerun=partial(shielded_thread, rescue)
        )

    async def _ended(self, errand: PreparedStep, why: str) -> StepResult:
        """End the agent and keep what it did."""
        errand.gate.lease.check()
        await end_agents_of(errand.request.means.runs, errand.call.workspace, CANCELLED)
        return await shielded_thread(self._over, errand, Verdict.CANCELLED, why)

    def _over(self, errand: PreparedStep, verdict: Verdict, reason: str) -> StepResult:
        """Keep what was done, and tell what is known; neither hides the other, nor the reason.

        Raises:
            SupersededError: A later attempt has begun, and what is there is its own.
        """
        errand.gate.lease.check()
        reasons = [reason]
        try:
            self.host.rescue(errand.place, reason[:200], errand.call.step)
        except (SnapshotError, OSError) as error:
            reasons.append(str(error))
        facts = facts_of(errand.call, _last(errand), _changes(errand))
        return StepResult(**facts, verdict=verdict, reasons=bounded(tuple(reasons)), rescues=self._rescues(errand))

    def _settled(self, errand: PreparedStep, carried: TurnResult, prove: Prove) -> StepResult:
        call = errand.call
        toured = self._toured(errand)
        evidence = gather(errand.place, errand.began_at, toured=toured)
        facts = facts_of(call, carried, evidence.files_changed)
        try:
            answer = _read(call, carried)
        except AnswerError as error:
            if carried.outcome.session_id is None:
                return self._not_done(errand, facts, Verdict.UNPARSED, error.reasons)
            checkpoint = self._checkpoint(errand, "the answer was not read", evidence.standing, toured)
            session = KeptSession(call.workspace.agent, carried.outcome.session_id)
            with errand.gate.halting():
                warnings = bounded((*facts["warnings"], *keep(self.host, errand.place, session)))
            return StepResult(
                **facts | {"warnings": warnings},
                verdict=Verdict.UNPARSED,
                reasons=bounded(error.reasons),
                checkpoint=checkpoint,
                rescues=self._rescues(errand),
            )
        return self._proven(errand, facts, answer, prove, evidence, toured)

    def _toured(self, errand: PreparedStep) -> WorktreeScan | None:
        """Walk over the worktree once for all; not where the repository's own checks may write into it later."""
        checked = errand.call.step is Step.CREATE_COMMIT and errand.settings.checks
        return None if checked else self.host.scan(errand.place)

    def _finalized(
        self, errand: PreparedStep, asked: FinalizeCall, carried: TurnResult, prove: Prove
    ) -> StepResult:
        try:
            answer = _read(asked.call, carried)
        except AnswerError as error:
            return self._not_finalized(errand, asked, carried, error.reasons)
        facts = self._facts_with(errand, asked, carried) | {"recovered_by": "finalizer"}
        return self._proven(errand, facts, answer, prove, gather(errand.place, errand.began_at))

    def _not_finalized(
        self, errand: PreparedStep, asked: FinalizeCall, carried: TurnResult | None, reasons: tuple[str, ...]
    ) -> StepResult:
        """Leave the step without an answer: the second try is the last one."""
        facts = self._facts_with(errand, asked, carried)
        if asked.attempt > 1:
            return self._not_done(errand, facts, Verdict.UNPARSED, reasons)
        kept = {"checkpoint": asked.result.checkpoint, "rescues": self._rescues(errand)}
        return StepResult(**facts | kept, verdict=Verdict.UNPARSED, reasons=bounded(reasons))

    def _facts_with(self, errand: PreparedStep, asked: FinalizeCall, carried: TurnResult | None) -> dict[str, Any]:
        """Complete the step's facts by what the finalizer used; what it did to the worktree is undone."""
        before = asked.result
        facts = before.model_dump(
            exclude={
                "verdict",
                "reasons",
                "checkpoint",
                "rescues",
                "result_text",
                "commit_sha",
                "plan_sha256",
                "outline",
            }
        )
        facts |= {"usage": before.usage, "files_changed": before.files_changed}
        if carried is not None:
            seconds = round(carried.outcome.duration_seconds or 0.0, 3)
            facts |= {
                "usage": before.usage.plus(carried.usage),
                "duration_seconds": before.duration_seconds + seconds,
            }
        facts["warnings"] = bounded((*before.warnings, *self._undone(errand)))
        return facts

    def _undone(self, errand: PreparedStep) -> tuple[str, ...]:
        """Return the worktree to what it was before the finalizer, and the warning where it was another."""
        if not errand.starts_from or not self.host.differs(errand.place, errand.starts_from):
            return ()
        step = errand.call.step
        rescue = self.host.return_to(errand.place, errand.starts_from, "what the finalizer changed", step)
        return (_UNDONE.format(rescue.snapshot if rescue else "no snapshot, for nothing was left of it"),)

    def _proven(  # noqa: PLR0913, PLR0917 -- each is a part of what is held against what
        self,
        errand: PreparedStep,
        facts: dict[str, Any],
        answer: Answer[Any],
        prove: Prove,
        evidence: Evidence,
        toured: WorktreeScan | None = None,
    ) -> StepResult:
        """Hold an answer against the evidence: done and a checkpoint, or not done and a rescue with the reason."""
        call, place = errand.call, errand.place
        facts |= {"parsed_by": answer.parsed_by, "result_json": answer_json(answer)}
        try:
            with errand.gate.halting():
                claim = Claim(call, place, answer.value, evidence, errand.settings, errand.gate, toured)
                proof = prove(claim)
        except EvidenceError as error:
            verdict = Verdict.REFUSED if isinstance(error, RefusedError) else Verdict.UNPROVEN
            return self._not_done(errand, facts, verdict, (str(error),))
        checkpoint = self._checkpoint(errand, f"{call.step} is done", proof.standing or evidence.standing, toured)
        session = _session_that_goes_on(call, facts["session_id"])
        with errand.gate.halting():
            warnings = (*facts["warnings"], *answer.warnings, *proof.warnings, *keep(self.host, place, session))
        return StepResult(
            **facts | {"warnings": bounded(warnings)},
            verdict=Verdict.DONE,
            result_text=bounded_text(proof.result_text),
            commit_sha=proof.commit_sha,
            plan_sha256=proof.plan_sha256,
            outline=proof.outline,
            checkpoint=checkpoint,
            rescues=self._rescues(errand),
        )

    def _checkpoint(
        self, errand: PreparedStep, reason: str, standing: WorktreeStatus | None, toured: WorktreeScan | None
    ) -> str | None:
        """Take a checkpoint and return its name; where a walk tells, how the worktree stands is noted with it."""
        place = errand.place
        checkpoint = self.host.snapshot(place, "checkpoint", reason, errand.call.step, toured)
        if checkpoint is None:
            return None
        if standing is not None and toured is not None:
            save_worktree_status(place, checkpoint.commit, standing)
        return checkpoint.name

    def _not_done(
        self, errand: PreparedStep, facts: dict[str, Any], verdict: Verdict, reasons: tuple[str, ...]
    ) -> StepResult:
        """Keep what was done in a rescue and say why it does not count."""
        self.host.rescue(errand.place, reasons[0][:200], errand.call.step)
        _log.warning(
            "step_not_done",
            step=errand.call.step,
            verdict=verdict,
            reasons=[preview(reason) for reason in reasons],
        )
        return StepResult(**facts, verdict=verdict, reasons=bounded(reasons), rescues=self._rescues(errand))

    def _rescues(self, errand: PreparedStep) -> tuple[Rescue, ...]:
        """Return what was kept since the step began, also by attempts that died.

        A step may begin with an older snapshot than its work order: what a lane kept before is others'.
        """
        return rescues_since(errand.place, errand.call.starts_from, errand.call.workspace.entered_after)


def _read(call: StepCall, carried: TurnResult) -> Answer[Any]:
    outcome = carried.outcome
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


def _last(errand: PreparedStep) -> TurnResult | None:
    """Return what the last agent came to; nothing, where a disk lets nobody look."""
    try:
        return last_result(errand.request)
    except OSError:
        return None


def _changes(errand: PreparedStep) -> tuple[FileChange, ...]:
    """Return what git says changed; nothing, where the agent has broken its repository."""
    try:
        return gather(errand.place, errand.began_at).files_changed
    except (SeptetError, OSError):
        return ()


def _session_that_goes_on(call: StepCall, session_id: str | None) -> KeptSession | None:
    """Return the session of a lane, with which its next work order goes on, wherever the lane is then."""
    return KeptSession(call.workspace.agent, session_id) if call.workspace.lane and session_id else None
