"""The row of a task, as the workflow that has it wrote it into its memo."""

from pydantic import ValidationError
from temporalio.client import WorkflowExecution

from septet.contracts.row import MEMO
from septet.contracts.task import Task


async def task_in(row: WorkflowExecution) -> Task | None:
    """Return the task that a workflow tells of; `None` where it tells none, such as one of an older version."""
    try:
        return Task.model_validate(await row.memo_value(MEMO, {}), strict=False)
    except ValidationError:
        return None
