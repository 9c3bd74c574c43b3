"""Describe pipelines without a worker: from their inputs, and from the server's list of workflows."""

from collections.abc import Iterable
from typing import Final

from temporalio.client import WorkflowExecution

from clients.executions.typed_client import CLOSED_AS
from septet.contracts.task import TaskError
from septet.costs.estimate import REST_STEPS, WHOLE, WorkAhead
from septet.pipelines.inputs import PipelineInput
from septet.pipelines.views import (
    IssueState,
    IssueStatus,
    PipelineRow,
    PipelineRun,
    PipelineStatus,
    PipelineView,
)
from septet.system.text import timestamp

OVER: Final = frozenset(
    {PipelineStatus.COMPLETED, PipelineStatus.STOPPED, PipelineStatus.FAILED, PipelineStatus.CANCELLED}
)
"""The statuses of a pipeline that is over."""


def view_of_input(pipeline_id: str, order: PipelineInput, created_at: str) -> PipelineView:
    """Return a pipeline's view, made only from the pipeline's input."""
    previous = order.carried if isinstance(order, PipelineRun) else None
    lanes = {lane.id: lane for lane in previous.lanes} if previous else {}
    planner = lanes.pop(f"{pipeline_id}-planner", None)
    status = PipelineStatus.RUNNING
    if previous is not None and (previous.stopping or previous.paused):
        status = PipelineStatus.STOPPING if previous.stopping else PipelineStatus.PAUSED
    return PipelineView(
        id=pipeline_id,
        repository=order.repository,
        status=status,
        reason=previous.reason if previous else "",
        created_at=previous.created_at if previous else created_at,
        planner=planner,
        executors=tuple(lanes.values()),
        one_branch=order.one_branch,
        fresh=order.fresh,
        issues=previous.issues if previous else tuple(_issues(pipeline_id, order)),
    )


def view_of_row(row: WorkflowExecution) -> PipelineView:
    """Return a pipeline's view made only from the server's list, with id and start, but without issues."""
    return PipelineView(
        id=row.id, repository="", status=PipelineStatus.RUNNING, created_at=timestamp(row.start_time)
    )


def view_at_close(view: PipelineView, row: WorkflowExecution, error: TaskError | None = None) -> PipelineView:
    """Return the view, with the status, time and error of an end that the pipeline itself could not record."""
    word = CLOSED_AS.get(row.status)
    if word is None or view.status in OVER:
        return view
    closed_at = timestamp(row.close_time) if row.close_time else None
    end = {"status": PipelineStatus(word), "closed_at": closed_at, "error": error or view.error}
    return view.model_copy(update=end)


def row_of_view(view: PipelineView) -> PipelineRow:
    """Return a pipeline's row in a list, with the pipeline's error or else its first failed issue's error."""
    failed = next((issue for issue in view.issues if issue.status is IssueStatus.FAILED and issue.error), None)
    reason = f"{failed.title or failed.issue_id}: {failed.error.message}" if failed and failed.error else ""
    reason = view.error.message if view.error is not None else reason
    return PipelineRow(
        id=view.id,
        repository=view.repository,
        status=view.status,
        created_at=view.created_at,
        closed_at=view.closed_at,
        counts=counts_of(view),
        reason=reason[:500],
    )


def counts_of(view: PipelineView) -> dict[IssueStatus, int]:
    """Return the number of issues by status, without zeros."""
    statuses = [issue.status for issue in view.issues]
    return {status: statuses.count(status) for status in IssueStatus if status in statuses}


def work_ahead(issues: Iterable[IssueState]) -> tuple[WorkAhead, ...]:
    """Return the remaining work of each open issue; running work counts as work that has just begun."""
    ahead: list[WorkAhead] = []
    for issue in issues:
        if issue.status in {IssueStatus.WAITING, IssueStatus.PLANNING}:
            ahead.append(WHOLE)
        elif issue.status in {IssueStatus.PLANNED, IssueStatus.EXECUTING}:
            ahead.append(WorkAhead(REST_STEPS, issue.plan_bytes))
    return tuple(ahead)


def _issues(pipeline_id: str, order: PipelineInput) -> list[IssueState]:
    return [
        IssueState(
            issue_id=issue.id,
            order_id=f"{pipeline_id}-{issue.id}",
            title=issue.title[:200],
            depends_on=issue.depends_on,
            context="fresh" if order.fresh else "shared",
            position=position,
        )
        for position, issue in enumerate(order.issue_list)
    ]
