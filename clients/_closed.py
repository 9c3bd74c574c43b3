"""The work order object of a work order that no worker can be asked about."""

from pydantic import ValidationError
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError

from septet.contracts.names import Stage, Status
from septet.contracts.pull_request import watched
from septet.contracts.row import MEMO
from septet.contracts.task import Task, TaskError
from septet.system.timestamps import timestamp
from workflows import search_attributes as by

_CLOSED_AS = {
    WorkflowExecutionStatus.RUNNING: (Status.RUNNING, Stage.EXECUTING),
    WorkflowExecutionStatus.COMPLETED: (Status.COMPLETED, Stage.REVIEW),
    WorkflowExecutionStatus.FAILED: (Status.FAILED, Stage.BLOCKED),
    WorkflowExecutionStatus.TIMED_OUT: (Status.FAILED, Stage.BLOCKED),
    WorkflowExecutionStatus.CANCELED: (Status.CANCELLED, Stage.DONE),
    WorkflowExecutionStatus.TERMINATED: (Status.CANCELLED, Stage.DONE),
}


def task_of_row(row: WorkflowExecution) -> Task:
    """Return what the row of a work order, or of the watch over its pull request, tells."""
    told = _told(row)
    if told is not None:
        return task_of_closed(told, row) if row.workflow_type == "WorkOrder" else told
    found = row.typed_search_attributes
    status, stage = _CLOSED_AS.get(
        row.status or WorkflowExecutionStatus.RUNNING, (Status.RUNNING, Stage.EXECUTING)
    )
    return Task(
        id=watched(row.id),
        project=found.get(by.PROJECT, ""),
        status=Status(found.get(by.STATUS, status.value)) if status is Status.RUNNING else status,
        stage=Stage(found.get(by.STAGE, stage.value)) if status is Status.RUNNING else stage,
        priority=found.get(by.PRIORITY, 3),
        assigned_agent=found.get(by.AGENT) or None,
        repository_url=found.get(by.REPOSITORY, ""),
        issue_number=found.get(by.ISSUE, ""),
        external_id=found.get(by.ISSUE, ""),
        pr_url=found.get(by.PULL_REQUEST) or None,
        created_at=timestamp(row.start_time),
        updated_at=timestamp(row.close_time or row.start_time),
    )


def _told(row: WorkflowExecution) -> Task | None:
    """Return the task in a row's memo; `None` where an older version has written none."""
    payload = row.raw_info.memo.fields.get(MEMO)
    if payload is None:
        return None
    try:
        return Task.model_validate_json(payload.data)
    except ValidationError:
        return None


def task_of_closed(task: Task, row: WorkflowExecution, cause: BaseException | None = None) -> Task:
    """Return the work order with the truth about its end: terminated workflows could not tell it themselves."""
    status, stage = _CLOSED_AS.get(row.status or WorkflowExecutionStatus.RUNNING, (task.status, task.stage))
    if status is Status.RUNNING:
        return task
    error = task.error
    if cause is not None:
        kind = (cause.type or "Failed") if isinstance(cause, ApplicationError) else type(cause).__name__
        message = cause.message if isinstance(cause, ApplicationError) else str(cause)
        error = TaskError(type=kind, message=message)
    return task.model_copy(update={"status": status, "stage": stage, "error": error})
