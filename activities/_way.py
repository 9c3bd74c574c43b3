"""The way of one step: prompt, agent, outcome, answer, evidence, checkpoint."""

import asyncio
from collections.abc import Callable
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
from septet.agents.ladder import Carried, Request, carry_out
from septet.agents.preview import preview
from septet.answers.ladder import Answer, AnswerError
from septet.answers.steps import read_step_answer, request_schema_of
from septet.commands.loader import load
from septet.commands.prompt import prompt, retry_note
from septet.commands.values import values
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
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
                return await self._kept(errand, self._walked(errand, prove, pulse))

    async def _walked(self, errand: Errand, prove: Prove, pulse: Pulse) -> StepResult:
        carried = await carry_out(
            errand.request,
            on_progress=pulse.follow,
            before_rerun=partial(unhurried, self.host.return_to_start, errand.call),
        )
        return await unhurried(self._settled, errand, carried, prove)

    def proven(self, errand: Errand, facts: dict[str, Any], answer: Answer[Any], prove: Prove) -> StepResult:
        """Hold an answer against the evidence: done with a checkpoint, or not done with a rescue and the reason."""
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
        rescue = self.host.rescue(errand.place, reasons[0], errand.call.step, self.host.run_folder(facts["run"]))
        _log.warning("step_not_done", step=errand.call.step, verdict=verdict, rescue=rescue and rescue.snapshot)
        return StepResult(**facts, verdict=verdict, reasons=bounded(reasons), rescue=rescue)

    def _settled(self, errand: Errand, carried: Carried, prove: Prove) -> StepResult:
        call, outcome = errand.call, carried.outcome
        facts = facts_of(call, carried, gather(errand.place).files_changed)
        try:
            answer = read_step_answer(call.step, outcome.text, structured=outcome.structured)
        except AnswerError as error:
            if outcome.session_id is None:
                return self.not_done(errand, facts, Verdict.UNPARSED, error.reasons)
            checkpoint = self.host.snapshot(errand.place, "checkpoint", "the answer was not read", call.step)
            kept = checkpoint.name if checkpoint else None
            return StepResult(**facts, verdict=Verdict.UNPARSED, reasons=bounded(error.reasons), checkpoint=kept)
        _log.info(
            "result_text_extracted",
            step=call.step,
            parsed_by=answer.parsed_by,
            length=len(outcome.text or ""),
            preview=preview(answer.value.result_text),
        )
        return self.proven(errand, facts, answer, prove)
