"""What can be done with pipelines: every face asks here and gives on what it is answered."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from clients.pipelines import PIPELINES_AT_ONCE, Pipelines
from septet.contracts.decisions import Who, Words
from septet.contracts.pipeline import IssueCall, PipelineCall, PipelineInput
from septet.contracts.pipeline_replies import PipelineReply, PipelinesReply, ReportReply, ResultsReply
from septet.errors import InvalidInputError
from septet.pipelines.records import documents
from septet.pipelines.report import as_markdown, report_of
from septet.pipelines.store import store_of
from septet.state import StateDir

PipelineDecision = Literal["pause", "resume", "stop", "skip", "replan"]
OF_AN_ISSUE = frozenset({"skip", "replan"})
"""Decisions that are about one issue."""


@dataclass(frozen=True, slots=True)
class PipelineOperations:
    """Pipelines on one Temporal namespace, with the files of this host.

    All raise `NotFoundError` for a pipeline that there is not, `ServerNotReachedError` where nobody answers, and
    `RefusedTransitionError` for what cannot be done with it now.
    """

    pipelines: Pipelines
    state: StateDir

    async def start(self, order: PipelineInput, pipeline_id: str | None = None, *, key: str = "") -> PipelineReply:
        """Start a pipeline. With a key it is started once: the same key and input give the same one again.

        Raises:
            AlreadyRunningError: The id was used before, or the key with another input.
            InvalidInputError: It is no id; or issues go in a circle, or come after one that is not there.
        """
        return PipelineReply(pipeline=await self.pipelines.start(order, pipeline_id, key=key))

    async def list(self, *, after: str = "", limit: int = PIPELINES_AT_ONCE) -> PipelinesReply:
        """Return a page of pipelines; `after` is the `next` of the page before.

        Raises:
            NotFoundError: No page goes on at `after`.
        """
        return await self.pipelines.list(after=after, limit=limit)

    async def show(self, pipeline_id: str) -> PipelineReply:
        """Return a pipeline with what is known of each issue."""
        return PipelineReply(pipeline=await self.pipelines.view(pipeline_id))

    async def results(self, pipeline_id: str) -> ResultsReply:
        """Return both documents of its results, as of now."""
        view = await self.pipelines.view(pipeline_id)
        planning, execution = await asyncio.to_thread(documents, store_of(self.state, view.id), view)
        return ResultsReply(planning=planning, execution=execution)

    async def report(self, pipeline_id: str) -> ReportReply:
        """Return the report on it, as of now."""
        report = report_of(await self.pipelines.view(pipeline_id))
        return ReportReply(report=report, markdown=as_markdown(report))

    async def decide(
        self, pipeline_id: str, decision: PipelineDecision, issue_id: str = "", who: Who = "", why: Words = ""
    ) -> PipelineReply:
        """Pause, resume or stop a pipeline, or skip or replan one of its issues.

        Raises:
            InvalidInputError: The issue is missing, or is no part of such a decision.
        """
        call: PipelineCall | IssueCall = PipelineCall(who=who, why=why)
        if decision in OF_AN_ISSUE:
            call = IssueCall(issue_id=issue_id, who=who, why=why)
        if (decision in OF_AN_ISSUE) != bool(issue_id):
            needs = "is about one issue" if decision in OF_AN_ISSUE else "is about the whole pipeline"
            raise InvalidInputError(f"issue_id: {decision} {needs}.", remedy="Only skip and replan name an issue.")
        return PipelineReply(pipeline=await self.pipelines.decide(pipeline_id, decision, call))

    async def cancel(self, pipeline_id: str, who: str = "", why: str = "") -> PipelineReply:
        """End both agents and the work orders under way, each with its work in a rescue."""
        return PipelineReply(pipeline=await self.pipelines.cancel(pipeline_id, PipelineCall(who=who, why=why)))
