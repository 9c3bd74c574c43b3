"""The typed client of pipelines: every face asks here, and gets the same objects."""

import asyncio
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from clients._pipeline_asked import asked_of, counts_of, view_as_asked, view_of_closed, view_of_row
from clients._refused import refused_of_open, refused_of_pipeline
from clients._updates import update
from clients.pages import page_of
from septet.contracts.pipeline import PIPELINE_ID, IssueCall, PipelineCall, PipelineInput
from septet.contracts.pipeline_replies import PipelineRow, PipelinesReply
from septet.contracts.pipeline_view import PipelineView
from septet.errors import AlreadyRunningError, InvalidInputError, NotFoundError, RefusedTransitionError
from septet.pipelines.issues import ordered
from septet.system.timestamps import timestamp

PIPELINES_AT_ONCE: Final = 50
_QUERY_TIMEOUT: Final = timedelta(seconds=5)
_CANCEL_WITHIN_SECONDS: Final = 20.0
_SHOW: Final = "septet pipeline show"
_LIST: Final = 'WorkflowType="Pipeline" AND ExecutionStatus!="ContinuedAsNew"'

Handle = WorkflowHandle[Any, PipelineView]


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Pipelines on one Temporal namespace."""

    client: Client
    task_queue: str = "septet"

    async def start(self, order: PipelineInput, pipeline_id: str | None = None, *, key: str = "") -> PipelineView:
        """Start a pipeline, and return it as it was asked for: no worker is waited for.

        With a key it is started once: the same key and input give the same pipeline again.

        Raises:
            AlreadyRunningError: The id was used before, or the key with another input.
            InvalidInputError: It is no id; or issues go in a circle, or come after one that is not there.
            ServerNotReachedError: The server refused.
        """
        if pipeline_id is None:
            pipeline_id = f"pl-{sha256(key.encode()).hexdigest()[:16] if key else secrets.token_hex(4)}"
        if not re.fullmatch(PIPELINE_ID, pipeline_id):
            remedy = "Use up to 40 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{pipeline_id!r} is no id of a pipeline.", remedy=remedy)
        ordered(order.listed)
        try:
            await self.client.start_workflow(
                "Pipeline",
                order,
                id=pipeline_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=f"{order.repository} {_what(order)}"[:200],
            )
        except WorkflowAlreadyStartedError as error:
            if key and await self._was_asked(pipeline_id) == order:
                return await self.view(pipeline_id)
            message = f"The id {pipeline_id} was used before."
            raise AlreadyRunningError(message, remedy=f"Look at it with `{_SHOW} {pipeline_id}`.") from error
        except RPCError as error:
            raise refused_of_pipeline(error, pipeline_id) from error
        return view_as_asked(pipeline_id, order, timestamp(datetime.now(UTC)))

    async def view(self, pipeline_id: str) -> PipelineView:
        """Return a pipeline: as its workflow tells it, or as it told at its end.

        Raises:
            NotFoundError: There is no such pipeline.
        """
        return await self._seen(await self._describe(pipeline_id))

    async def list(self, *, after: str = "", limit: int = PIPELINES_AT_ONCE) -> PipelinesReply:
        """Return a page of pipelines, the open ones before the closed ones; `after` is the `next` of a page.

        Raises:
            NotFoundError: No list goes on at `after`.
            ServerNotReachedError: The server refused.
        """
        rows, following = await page_of(self.client, _LIST, after=after, limit=limit)
        views = await asyncio.gather(*map(self._seen, rows))
        return PipelinesReply(pipelines=tuple(map(_row, views)), next=following)

    async def wait(self, pipeline_id: str) -> PipelineView:
        """Wait until a pipeline is closed and return it."""
        try:
            await self._handle(pipeline_id).result()
        except WorkflowFailureError:
            pass
        except RPCError as error:
            raise refused_of_pipeline(error, pipeline_id) from error
        return await self.view(pipeline_id)

    async def decide(self, pipeline_id: str, decision: str, call: PipelineCall | IssueCall) -> PipelineView:
        """Pause, resume or stop a pipeline, or skip or replan one of its issues; return it as it is then.

        Raises:
            NotFoundError: There is no such pipeline.
            RefusedTransitionError: It cannot be done now.
            ServerNotReachedError: No worker has answered.
        """
        await self._describe(pipeline_id)
        await update(self._handle(pipeline_id), decision, call, PipelineView, _SHOW)
        return await self.view(pipeline_id)

    async def cancel(self, pipeline_id: str, call: PipelineCall) -> PipelineView:
        """End both agents and the work orders under way, each with its work in a rescue.

        Raises:
            NotFoundError: There is no such pipeline.
            RefusedTransitionError: It is closed already.
        """
        description = await self._describe(pipeline_id)
        if description.status is not WorkflowExecutionStatus.RUNNING:
            view = await self._seen(description)
            message = f"{pipeline_id} is {view.status.value} and cannot be cancelled."
            raise RefusedTransitionError(message, remedy="Only pipelines that are open can be cancelled.")
        by = f"cancelled by {call.who}" if call.who else ""
        try:
            await self._handle(pipeline_id).cancel(reason=": ".join(part for part in (by, call.why) if part))
        except RPCError as error:
            raise refused_of_open(error, pipeline_id, _SHOW) from error
        try:
            async with asyncio.timeout(_CANCEL_WITHIN_SECONDS):
                return await self.wait(pipeline_id)
        except TimeoutError:
            return await self.view(pipeline_id)

    async def _seen(self, row: WorkflowExecution) -> PipelineView:
        """Return a pipeline by its own account; where nobody gives one, as it was asked for."""
        handle, cause = self._handle(row.id), None
        if row.status in {WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED}:
            try:
                return await self._handle(row.id, row.run_id).result(follow_runs=False)
            except WorkflowFailureError as error:
                cause = error.cause
            except RPCError as error:
                raise refused_of_pipeline(error, row.id) from error
        if isinstance(cause, ApplicationError) and cause.details:
            return PipelineView.model_validate(cause.details[0], strict=False)
        try:
            view: PipelineView = await handle.query(
                "pipeline", result_type=PipelineView, rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            view = await self._as_asked(row)
        return view_of_closed(view, row, cause)

    async def _as_asked(self, row: WorkflowExecution) -> PipelineView:
        try:
            asked = await asked_of(self._handle(row.id, row.run_id))
        except RPCError as error:
            raise refused_of_pipeline(error, row.id) from error
        return view_as_asked(row.id, asked[0], timestamp(row.start_time)) if asked else view_of_row(row)

    async def _was_asked(self, pipeline_id: str) -> PipelineInput | None:
        """Return what the first run of a pipeline was started with."""
        try:
            asked = await asked_of(self._handle(pipeline_id))
            if asked is not None and asked[0].carried is not None:
                asked = await asked_of(self._handle(pipeline_id, asked[1]))
        except RPCError as error:
            raise refused_of_pipeline(error, pipeline_id) from error
        if asked is None:
            return None
        return PipelineInput(**{name: getattr(asked[0], name) for name in PipelineInput.model_fields})

    async def _describe(self, pipeline_id: str) -> WorkflowExecutionDescription:
        try:
            description = await self._handle(pipeline_id).describe()
        except RPCError as error:
            raise refused_of_pipeline(error, pipeline_id) from error
        if description.workflow_type != "Pipeline":
            kind = description.workflow_type
            raise NotFoundError(f"{pipeline_id} is a workflow, but no pipeline: {kind}.")
        return description

    def _handle(self, pipeline_id: str, run_id: str | None = None) -> Handle:
        return self.client.get_workflow_handle(pipeline_id, run_id=run_id, result_type=PipelineView)


def _what(order: PipelineInput) -> str:
    return f"label {order.label}" if order.label is not None else f"{len(order.issues)} issues"


def _row(view: PipelineView) -> PipelineRow:
    return PipelineRow(
        id=view.id,
        repository=view.repository,
        status=view.status,
        created_at=view.created_at,
        closed_at=view.closed_at,
        counts=counts_of(view),
    )
