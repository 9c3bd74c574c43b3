"""What a work order of a pipeline came to that was not completed."""

from typing import Final

from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from septet.contracts.pipeline_view import IssueStatus
from septet.contracts.task import Task, TaskError
from workflows._failures import GO_ON

_OTHER_ID: Final = "Put the issue into a pipeline with another id: its work order is named `<pipeline>-<issue>`."


def how_it_ended(failed: BaseException, order_id: str) -> tuple[IssueStatus, Task | None, TaskError | None]:
    """Return what a work order that was not completed came to."""
    cause = failed.cause if isinstance(failed, ChildWorkflowError) else failed
    if is_cancelled_exception(failed) or (cause is not None and is_cancelled_exception(cause)):
        return IssueStatus.CANCELLED, None, TaskError(type="Cancelled", message="The work order was cancelled.")
    if isinstance(cause, ApplicationError) and cause.details:
        task = Task.model_validate(cause.details[0], strict=False)
        return IssueStatus.FAILED, task, task.error
    if isinstance(failed, WorkflowAlreadyStartedError):
        message = f"There was a work order {failed.workflow_id} before this pipeline: the id is taken."
        return IssueStatus.FAILED, None, TaskError(type="AlreadyRunning", message=message, remedy=_OTHER_ID)
    message = f"The work order ended: {cause or failed}"
    error = TaskError(type=type(cause or failed).__name__, message=message, remedy=GO_ON)
    return IssueStatus.FAILED, None, error.of(order_id)
