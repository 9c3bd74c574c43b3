"""The client that starts, reads and changes pipelines on the Temporal server."""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import ClassVar, Final, Literal

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from clients.executions.index import page_of
from clients.executions.messages import PIPELINE, Subject
from clients.executions.news import follow_workflow
from clients.executions.presence import why_nobody_works_on
from clients.executions.seals import seals
from clients.executions.task_rows import task_of_row
from clients.executions.typed_client import Executions
from clients.pipelines.rows import OVER, row_of_view, view_at_close, view_of_input, view_of_row
from septet.contracts.decisions import Who, Words
from septet.contracts.repository import without_credentials
from septet.contracts.task import TaskError
from septet.errors import AlreadyRunningError, InvalidInputError
from septet.pipelines.inputs import PIPELINE_ID, IssueCall, PipelineCall, PipelineInput
from septet.pipelines.issues import order_issues
from septet.pipelines.records import as_markdown, documents, report_of
from septet.pipelines.store import store_of
from septet.pipelines.views import (
    IssueStatus,
    PipelineReply,
    PipelineRun,
    PipelinesReply,
    PipelineView,
    ReportReply,
    ResultsReply,
)
from septet.state import StateDir
from septet.system.text import count_noun, timestamp

_AT_WORK: Final = (IssueStatus.PLANNING, IssueStatus.EXECUTING)


async def with_needs(client: Client, view: PipelineView) -> PipelineView:
    """Return a pipeline's view with `needs`: what its work orders need from people, read without a worker."""
    orders = [issue.order_id for issue in view.issues if issue.status in _AT_WORK]
    needs = await asyncio.gather(*(_need_of(client, order_id) for order_id in orders))
    return view.model_copy(update={"needs": tuple(dict.fromkeys(filter(None, needs)))})


async def _need_of(client: Client, order_id: str) -> str:
    try:
        task = await task_of_row(await client.get_workflow_handle(order_id).describe())
    except RPCError:  # it has not started yet
        return ""
    if task.is_closed:
        return ""
    if task.waits_for_a_decision:
        return f"{task.id} is waiting for your approval: septet approve {task.id}"
    needs_nobody = task.budget is not None and not task.budget.is_spent
    return "" if needs_nobody else task.question


PIPELINES_AT_ONCE: Final = 50
_LIST: Final = 'WorkflowType="Pipeline" AND ExecutionStatus!="ContinuedAsNew"'
KnownViews = dict[tuple[str | None, int], PipelineView]
"""The pipelines' views from earlier reads; a key is a Temporal run and the length of the run's history."""
PipelineDecision = Literal["pause", "resume", "stop", "skip", "replan", "cancel"]
_OF_AN_ISSUE: Final = frozenset({"skip", "replan"})
"""The decisions that name one issue."""


@dataclass(frozen=True, slots=True)
class PipelineClient(Executions[PipelineView]):
    """Starts, reads and changes the pipelines of one Temporal namespace.

    All methods raise `NotFoundError` for a missing pipeline, `ServerNotReachedError` if the server does not
    answer, and `RefusedTransitionError` if the pipeline's state does not allow the request.
    """

    state: StateDir = field(kw_only=True)

    subject: ClassVar[Subject] = PIPELINE
    workflow: ClassVar[str] = "Pipeline"
    query: ClassVar[str] = "pipeline"
    view: ClassVar[type[PipelineView]] = PipelineView

    async def start(self, order: PipelineInput, pipeline_id: str | None = None, *, key: str = "") -> PipelineReply:
        """Start a pipeline, and return its view made from the input, without waiting for a worker.

        With a key the start is idempotent: the same key and input return the same pipeline.

        Raises:
            AlreadyRunningError: The id was used before, or the key was used with another input.
            InvalidInputError: The id is invalid, or issues depend on missing issues or on each other.
        """
        if pipeline_id is None:
            pipeline_id = pipeline_id_of_key(key) if key else f"pl-{secrets.token_hex(4)}"
        if not re.fullmatch(PIPELINE_ID, pipeline_id):
            remedy = "Use up to 40 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{pipeline_id!r} is not a pipeline id.", remedy=remedy)
        order_issues(order.issue_list)
        order = order.model_copy(update={"repository": without_credentials(order.repository)})
        issues = f"label {order.label}" if order.label is not None else count_noun(len(order.issues), "issue")
        try:
            await self.start_workflow(pipeline_id, order, f"{order.repository} {issues}")
        except AlreadyRunningError:
            if not key or await self._first_input(pipeline_id) != order:
                raise
            return await self.show(pipeline_id)
        return PipelineReply(pipeline=view_of_input(pipeline_id, order, timestamp(datetime.now(UTC))))

    async def show(self, pipeline_id: str) -> PipelineReply:
        """Return a pipeline with the state of each issue, and with what its work orders need from people."""
        return PipelineReply(pipeline=await with_needs(self.client, await self.get(pipeline_id)))

    async def views(self, pipeline_id: str) -> AsyncGenerator[PipelineView, None]:
        """Yield a pipeline now and after each change, until the pipeline is over.

        A worker is queried only after new events, so an unchanged pipeline costs no Temporal Action. What work
        orders need from people is read from the server every few seconds.
        """
        await self.describe(pipeline_id)
        async with follow_workflow(self.handle(pipeline_id)) as news:
            await news.come_within(0.5)
            while True:
                view = await with_needs(self.client, await self.get(pipeline_id))
                yield view
                if view.status in OVER:
                    return
                if not view.issues:  # no worker has answered, or the pipeline has only just begun
                    news.come_again()
                while not await news.come_within(3.0):
                    before, view = view, await with_needs(self.client, view)
                    if view.needs != before.needs:
                        yield view

    async def list(
        self, *, after: str = "", limit: int = PIPELINES_AT_ONCE, known_views: KnownViews | None = None
    ) -> PipelinesReply:
        """Return a page of pipelines, the open ones before the closed ones.

        `known_views` is the caller's cache for further calls; only pipelines with new events are read again.

        Raises:
            NotFoundError: `after` is not the `next` of a page.
        """
        rows, more = await page_of(self.client, _LIST, after=after, limit=limit)
        views = await self._known_or_asked(rows, known_views if known_views is not None else {})
        return PipelinesReply(pipelines=tuple(map(row_of_view, views)), next=more)

    async def results(self, pipeline_id: str) -> ResultsReply:
        """Return the results of a pipeline's planning and execution, as of now."""
        view = await self.get(pipeline_id)
        planning, execution = await asyncio.to_thread(documents, store_of(self.state, view.id), view)
        return ResultsReply(planning=planning, execution=execution)

    async def report(self, pipeline_id: str) -> ReportReply:
        """Return the report on a pipeline, as of now."""
        report = report_of(await self.get(pipeline_id))
        return ReportReply(report=report, markdown=as_markdown(report))

    async def decide(
        self, pipeline_id: str, decision: PipelineDecision, issue_id: str = "", who: Who = "", why: Words = ""
    ) -> PipelineReply:
        """Carry out a decision on a pipeline or on one of its issues, and return the pipeline.

        Raises:
            InvalidInputError: The decision needs an `issue_id` and has none, or takes none and has one.
        """
        if decision == "cancel":
            return await self.cancel(pipeline_id, who, why)
        call: PipelineCall | IssueCall = PipelineCall(who=who, why=why)
        if decision in _OF_AN_ISSUE:
            call = IssueCall(issue_id=issue_id, who=who, why=why)
        if (decision in _OF_AN_ISSUE) != bool(issue_id):
            needs = "is about one issue" if decision in _OF_AN_ISSUE else "is about the whole pipeline"
            raise InvalidInputError(f"issue_id: {decision} {needs}.", remedy="Only skip and replan name an issue.")
        await self.describe(pipeline_id)
        await self.calls(pipeline_id).update(decision, call, PipelineView)
        return await self.show(pipeline_id)

    async def cancel(self, pipeline_id: str, who: str = "", why: str = "") -> PipelineReply:
        """Cancel a pipeline, stop its agents, and save the work in rescues; return the pipeline.

        Without a worker, the cancel is only requested, and the reply reports the lack of a worker.
        """
        call = PipelineCall(who=who, why=why)
        by = f"cancelled by {call.who}" if call.who else ""
        reason = ": ".join(part for part in (by, "" if seals(self.client) else call.why) if part)
        await self.ask_to_cancel(pipeline_id, reason)
        nobody = await self._nobody_works_on(pipeline_id)
        view = await (self.get(pipeline_id) if nobody else self.wait_briefly(pipeline_id))
        return PipelineReply(pipeline=view)

    async def without_result(self, row: WorkflowExecution, *, has_failed: bool) -> PipelineView:
        """Return a worker's view of a pipeline without result; if no worker answers, make it from the input."""
        del has_failed
        cause = await self.stuck_cause(row)
        view = await self.answer_of(row.id, self.query, PipelineView) if cause is None else None
        if view is not None:
            return view
        order = await self.input_of(PipelineRun, row.id, row.run_id)
        view = view_of_input(row.id, order, timestamp(row.start_time)) if order else view_of_row(row)
        return view.model_copy(update={"stuck": cause or await self._nobody_works_on(row.id) or None})

    async def _nobody_works_on(self, pipeline_id: str) -> str:
        return await why_nobody_works_on(self.client, await self.describe(pipeline_id), self.state)

    def at_close(self, view: PipelineView, row: WorkflowExecution, error: TaskError | None) -> PipelineView:
        """Return a pipeline's view with the final status, time and error."""
        return view_at_close(view, row, error)

    def remedy_for_closed(self, view: PipelineView) -> str:
        """Return the remedy for an attempt to cancel a closed pipeline."""
        del view
        return "Only pipelines that are open can be cancelled."

    async def _known_or_asked(
        self, rows: Sequence[WorkflowExecution], known_views: KnownViews
    ) -> Sequence[PipelineView]:
        """Return the views of listed pipelines; read only pipelines with new events, and update `known_views`."""

        async def look(row: WorkflowExecution) -> tuple[tuple[str | None, int], PipelineView]:
            mark = (row.run_id, (await self.describe(row.id)).history_length)
            return mark, known_views.get(mark) or await self.get_of_row(row)

        seen = await asyncio.gather(*map(look, rows))
        known_views.clear()
        known_views.update(seen)
        return [view for _, view in seen]

    async def _first_input(self, pipeline_id: str) -> PipelineInput | None:
        order = await self.input_of(PipelineRun, pipeline_id)
        if order is not None and order.carried is not None:
            order = await self.input_of(PipelineRun, pipeline_id, order.carried.first_run_id)
        return order and PipelineInput(**{name: getattr(order, name) for name in PipelineInput.model_fields})


def pipeline_id_of_key(key: str) -> str:
    """Return the id that a pipeline gets if the caller gives only an idempotency key."""
    return f"pl-{sha256(key.encode()).hexdigest()[:16]}"
