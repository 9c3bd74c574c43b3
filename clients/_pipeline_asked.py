"""A pipeline as it was asked for, where no worker tells how it goes, with what the server knows of its end."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError

from septet.contracts.pipeline import PipelineInput
from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineRun, PipelineStatus, PipelineView
from septet.contracts.task import TaskError
from septet.system.timestamps import timestamp

OVER: Final = frozenset(
    {PipelineStatus.COMPLETED, PipelineStatus.STOPPED, PipelineStatus.FAILED, PipelineStatus.CANCELLED}
)
"""Nothing happens any more in a pipeline that is here."""
_CLOSED_AS: Final[Mapping[WorkflowExecutionStatus, PipelineStatus]] = {
    WorkflowExecutionStatus.COMPLETED: PipelineStatus.COMPLETED,
    WorkflowExecutionStatus.FAILED: PipelineStatus.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: PipelineStatus.FAILED,
    WorkflowExecutionStatus.CANCELED: PipelineStatus.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: PipelineStatus.CANCELLED,
}


async def asked_of(handle: WorkflowHandle[Any, Any]) -> tuple[PipelineRun, str] | None:
    """Return a run's input, and the id of the pipeline's first run; `None` where it is no input of ours."""
    async for event in handle.fetch_history_events(page_size=1):
        told = event.workflow_execution_started_event_attributes
        payloads = told.input.payloads
        try:
            asked = PipelineRun.model_validate_json(payloads[0].data if payloads else b"null", extra="ignore")
        except ValidationError:
            return None
        return asked, told.first_execution_run_id
    return None


def view_as_asked(pipeline_id: str, asked: PipelineInput, created_at: str) -> PipelineView:
    """Return a pipeline of which no more is known than what it was started with."""
    carried = asked.carried if isinstance(asked, PipelineRun) else None
    lanes = {lane.id: lane for lane in carried.lanes} if carried else {}
    planner = lanes.pop(f"{pipeline_id}-planner", None)
    return PipelineView(
        id=pipeline_id,
        repository=asked.repository,
        status=PipelineStatus.PAUSED if carried and carried.paused else PipelineStatus.RUNNING,
        created_at=carried.created_at if carried else created_at,
        planner=planner,
        executors=tuple(lanes.values()),
        one_branch=asked.one_branch,
        fresh=asked.fresh,
        issues=carried.issues if carried else tuple(_issues(pipeline_id, asked)),
    )


def view_of_row(row: WorkflowExecution) -> PipelineView:
    """Return what the server's index alone tells."""
    return PipelineView(
        id=row.id, repository="", status=PipelineStatus.RUNNING, created_at=timestamp(row.start_time)
    )


def view_of_closed(view: PipelineView, row: WorkflowExecution, cause: BaseException | None = None) -> PipelineView:
    """Return a pipeline with the truth about its end: one that was terminated could not tell it itself."""
    status = _CLOSED_AS.get(row.status or WorkflowExecutionStatus.RUNNING)
    if status is None or view.status in OVER:
        return view
    error = view.error
    if cause is not None:
        kind = (cause.type or "Failed") if isinstance(cause, ApplicationError) else type(cause).__name__
        message = cause.message if isinstance(cause, ApplicationError) else str(cause)
        error = TaskError(type=kind, message=message)
    closed_at = timestamp(row.close_time) if row.close_time else None
    return view.model_copy(update={"status": status, "closed_at": closed_at, "error": error})


def counts_of(view: PipelineView) -> dict[IssueStatus, int]:
    """Return how many issues are where, for those places where there are any."""
    found = [issue.status for issue in view.issues]
    return {status: found.count(status) for status in IssueStatus if status in found}


def _issues(pipeline_id: str, asked: PipelineInput) -> list[IssueState]:
    return [
        IssueState(
            issue_id=issue.id,
            order_id=f"{pipeline_id}-{issue.id}",
            title=issue.title[:200],
            depends_on=issue.depends_on,
            context="fresh" if asked.fresh else "shared",
            position=position,
        )
        for position, issue in enumerate(asked.listed)
    ]
