"""The way of one step: prompt, agent, outcome, answer, evidence, checkpoint."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import structlog
from temporalio import activity

from activities._failures import failure, failures_told
from activities._proof import Proof, RefusedError
from activities._pulse import Pulse, beating, cancelled_by_a_person, unhurried
from activities._results import answer_json, bounded, bounded_text, facts_of
from activities._room import Host, read_papers
from septet.agents.adapter import Turn
from septet.agents.attachment import end_agent
from septet.agents.endings import CANCELLED
from septet.agents.ladder import Carried, carry_out
from septet.agents.launch import Request
from septet.agents.preview import preview
from septet.agents.registry import adapter_for
from septet.agents.runs import RunKey
from septet.answers.finalizer import finalizer_prompt
from septet.answers.ladder import Answer, AnswerError
from septet.answers.steps import read_step_answer, request_schema_of
from septet.commands.loader import load
from septet.commands.prompt import prompt, retry_note
from septet.commands.values import values
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from septet.errors import EvidenceError, SeptetError
from septet.git.evidence import Evidence, gather
from septet.git.place import Place
from septet.repository_settings import RepositorySettings, load_repository_settings

A = TypeVar("A")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Claim(Generic[A]):
    """What an agent says it has done, beside what git says."""

    call: StepCall
    place: Place
    answer: A
    evidence: Evidence
    settings: RepositorySettings


Prove = Callable[[Claim[Any]], Proof]


@dataclass(frozen=True, slots=True)
class Errand:
    """One call, prepared: what the agent is asked, and where."""

    call: StepCall
    place: Place
    settings: RepositorySettings
    request: Request


@dataclass(frozen=True, slots=True)
class Way:
    """What all seven steps have in common; what differs is the command and the proof."""

    host: Host

    async def walk(self, call: StepCall, prove: Prove) -> StepResult:
        """Run the agent, read its answer, hold it against the evidence, and keep a checkpoint.

        Raises:
            ApplicationError: The step could not be taken; its details name the remedy and the rescue.
        """
        with failures_told():
            async with beating() as pulse:
                errand = await unhurried(self._prepared, call)
                return await self._guarded(errand, self._walked(errand, prove, pulse))

    async def finalize(self, asked: FinalizeCall, prove: Prove) -> StepResult:
        """Ask the step's session for its answer alone, and complete the step's result with it.

        Raises:
            ApplicationError: The session could not be asked; its details name the remedy and the rescue.
        """
        with failures_told():
            async with beating() as pulse:
                errand = await unhurried(self._prepared_finalizer, asked)
                return await self._guarded(errand, self._finalized(errand, asked, prove, pulse))

    async def _guarded(self, errand: Errand, work: Coroutine[Any, Any, StepResult]) -> StepResult:
        """Do the work; where it fails for good or a person cancels, keep what was done in a rescue."""
        call, place = errand.call, errand.place
        try:
            return await work
        except asyncio.CancelledError:
            if not cancelled_by_a_person():
                raise
            await self._end_agent(errand)
            rescue = await unhurried(self.host.rescue, place, "the work order was cancelled", call.step)
            return StepResult(
                step=call.step, verdict=Verdict.CANCELLED, reasons=("it was cancelled",), rescue=rescue
            )
        except SeptetError as error:
            if error.retryable:
                raise
            rescue = await unhurried(self.host.rescue, place, error.message[:200], call.step)
            raise failure(error, rescue) from error

    async def _end_agent(self, errand: Errand) -> None:
        living = await unhurried(errand.request.means.runs.living, errand.request.order_id)
        if living is not None:
            await end_agent(living, CANCELLED)

    def _prepared(self, call: StepCall) -> Errand:
        """Find the place, read the papers, and fill the command."""
        place = self.host.place(call.workspace.work_order_id)
        papers = read_papers(place)
        wishes = load_repository_settings(papers.read)
        command = load(call.step, call.progress.issue_class, papers.read)
        filled = values(call.step, call.workspace, call.progress, papers.issue)
        note = retry_note(call.reasons) if call.reasons else ""
        turn = Turn(
            prompt=prompt(command, filled, note),
            worktree=place.worktree,
            schema=request_schema_of(call.step),
            model=wishes.model_for(call.step, call.model or self.host.settings.model),
        )
        return self._errand(call, place, wishes, turn, call.step.value)

    def _prepared_finalizer(self, asked: FinalizeCall) -> Errand:
        call = asked.call
        place = self.host.place(call.workspace.work_order_id)
        wishes = load_repository_settings(read_papers(place).read)
        turn = Turn(
            prompt=finalizer_prompt(call.step, asked.reasons, asked.attempt),
            worktree=place.worktree,
            resume_id=asked.session_id,
            schema=request_schema_of(call.step),
            tools="none",
            model=wishes.model_for(call.step, call.model or self.host.settings.model),
        )
        return self._errand(call, place, wishes, turn, f"{call.step.value}-finalizer")

    def _errand(self, call: StepCall, place: Place, wishes: RepositorySettings, turn: Turn, name: str) -> Errand:
        info = activity.info()
        key = RunKey(info.workflow_id or "", info.workflow_run_id or "", info.activity_id)
        request = Request(
            key=key,
            order_id=call.workspace.work_order_id,
            number=call.step.number,
            step=name,
            adapter=adapter_for(call.workspace.agent),
            turn=turn,
            limits=wishes.limits_for(call.step, call.limits),
            means=self.host.means,
        )
        return Errand(call, place, wishes, request)

    async def _walked(self, errand: Errand, prove: Prove, pulse: Pulse) -> StepResult:
        carried = await self._carried(errand, pulse)
        return await unhurried(self._settled, errand, carried, prove)

    async def _finalized(self, errand: Errand, asked: FinalizeCall, prove: Prove, pulse: Pulse) -> StepResult:
        carried = await self._carried(errand, pulse)
        return await unhurried(self._settled_finalizer, errand, asked, carried, prove)

    async def _carried(self, errand: Errand, pulse: Pulse) -> Carried:
        reason = "the agent crashed, and is run again"
        rescue = partial(unhurried, self.host.rescue, errand.place, reason, errand.call.step)
        return await carry_out(errand.request, on_progress=pulse.follow, before_rerun=rescue)

    def proven(self, errand: Errand, facts: dict[str, Any], answer: Answer[Any], prove: Prove) -> StepResult:
        """Hold an answer against the evidence: done and a checkpoint, or not done and a rescue with the reason."""
        call, place = errand.call, errand.place
        claim = Claim(call, place, answer.value, gather(place), errand.settings)
        facts |= {"parsed_by": answer.parsed_by, "result_json": answer_json(answer)}
        try:
            proof = prove(claim)
        except EvidenceError as error:
            verdict = Verdict.REFUSED if isinstance(error, RefusedError) else Verdict.UNPROVEN
            return self.not_done(errand, facts, verdict, (str(error),))
        checkpoint = self.host.snapshot(place, "checkpoint", f"{call.step} is done", call.step)
        return StepResult(
            **facts | {"warnings": bounded((*facts["warnings"], *answer.warnings, *proof.warnings))},
            verdict=Verdict.DONE,
            result_text=bounded_text(proof.result_text),
            commit_sha=proof.commit_sha,
            checkpoint=checkpoint.name if checkpoint else None,
        )

    def not_done(
        self, errand: Errand, facts: dict[str, Any], verdict: Verdict, reasons: tuple[str, ...]
    ) -> StepResult:
        """Keep what was done in a rescue and say why it does not count."""
        rescue = self.host.rescue(errand.place, reasons[0][:200], errand.call.step)
        _log.warning("step_not_done", step=errand.call.step, verdict=verdict, rescue=rescue and rescue.snapshot)
        return StepResult(**facts, verdict=verdict, reasons=bounded(reasons), rescue=rescue)

    def _settled(self, errand: Errand, carried: Carried, prove: Prove) -> StepResult:
        call, outcome = errand.call, carried.outcome
        facts = facts_of(call, carried, gather(errand.place).files_changed)
        try:
            answer = self._read(call, carried)
        except AnswerError as error:
            if outcome.session_id is None:
                return self.not_done(errand, facts, Verdict.UNPARSED, error.reasons)
            checkpoint = self.host.snapshot(errand.place, "checkpoint", "the answer was not read", call.step)
            kept = checkpoint.name if checkpoint else None
            return StepResult(**facts, verdict=Verdict.UNPARSED, reasons=bounded(error.reasons), checkpoint=kept)
        return self.proven(errand, facts, answer, prove)

    def _settled_finalizer(
        self, errand: Errand, asked: FinalizeCall, carried: Carried, prove: Prove
    ) -> StepResult:
        """Complete the step's facts by what the finalizer used and said."""
        before = asked.result
        facts = before.model_dump(
            exclude={"verdict", "reasons", "checkpoint", "rescue", "result_text", "commit_sha"}
        )
        facts |= {
            "usage": before.usage.plus(carried.outcome.usage),
            "files_changed": before.files_changed,
            "duration_seconds": before.duration_seconds + round(carried.outcome.duration_seconds or 0.0, 3),
        }
        try:
            answer = self._read(asked.call, carried)
        except AnswerError as error:
            if asked.attempt > 1:
                return self.not_done(errand, facts, Verdict.UNPARSED, error.reasons)
            kept = {"checkpoint": before.checkpoint, "reasons": bounded(error.reasons)}
            return StepResult(**facts | kept, verdict=Verdict.UNPARSED)
        return self.proven(errand, facts, answer, prove)

    def _read(self, call: StepCall, carried: Carried) -> Answer[Any]:
        outcome = carried.outcome
        answer = read_step_answer(call.step, outcome.text, structured=outcome.structured)
        _log.info(
            "result_text_extracted",
            step=call.step,
            parsed_by=answer.parsed_by,
            length=len(outcome.text or ""),
            preview=preview(answer.value.result_text),
        )
        return answer
