"""The short row of each work order, which the server's lists contain.

The rows are short because ten thousand work orders may wait on one board.
"""

from typing import Final

from septet.contracts.names import Stage, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.system.text import cut

MEMO: Final = "task"
"""The key of the workflow's memo with the row."""
DESCRIPTION_LIMIT: Final = 200
_MESSAGE_LIMIT: Final = 500
_ONLY_IN_MEMO: Final = ("title", "error", "rework", "budget")
"""The fields of a row that the search attributes do not contain."""


def row_of(task: Task) -> Task:
    """Return a task's row: the task without its steps and with long texts cut."""
    error = task.error
    if error is not None:
        texts = {"message": cut(error.message, _MESSAGE_LIMIT), "remedy": cut(error.remedy, _MESSAGE_LIMIT)}
        error = error.model_copy(update=texts)
    return task.model_copy(
        update={
            "steps": (),
            "title": cut(task.title, 300),
            "description": cut(task.description, DESCRIPTION_LIMIT),
            "rescues": task.rescues[-3:],
            "error": error,
        }
    )


def differ_in_memo(row: Task, other: Task, *, with_branch: bool) -> bool:
    """Return whether two rows differ in a field that only the memo has, or, if `with_branch`, in the branch."""
    names = (*_ONLY_IN_MEMO, "branch_name") if with_branch else _ONLY_IN_MEMO
    return any(getattr(row, name) != getattr(other, name) for name in names)


def differ_but_in_time(row: Task, other: Task) -> bool:
    """Return whether two rows of a task differ in any field except `updated_at`."""
    return row != other.model_copy(update={"updated_at": row.updated_at})


def waits_in(order: WorkOrderInput) -> Stage | None:
    """Return the stage in which a work order waits on the board; `None` if the work order begins at once."""
    if order.stage is not None:
        return Stage(order.stage)
    return Stage.TRIAGED if order.after else None


def first_task(order_id: str, order: WorkOrderInput, waits: Stage | None, now: str) -> Task:
    """Return a new work order's task, in stage `waits`, or `executing` for `None`; `now` is ISO 8601, UTC."""
    external_id = str(order.issue or "")
    if order.tracker is not None:
        external_id = order.tracker.key or order.tracker.id
    return Task(
        id=order_id,
        project=order.project or "",
        title=order.title or "",
        description=order.description or "",
        status=Status.PENDING if waits else Status.RUNNING,
        stage=waits or Stage.EXECUTING,
        priority=order.priority,
        impact=order.impact,
        effort=order.effort,
        score=order.priority + order.impact - order.effort,
        assigned_agent=order.agent,
        external_id=external_id,
        issue_number=str(order.issue or ""),
        repository_url=order.repository,
        after=order.after,
        created_at=now,
        updated_at=now,
    )
