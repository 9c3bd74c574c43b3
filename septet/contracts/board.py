"""The messages and the state of the board, and the row of a work order.

All of them are short, because ten thousand work orders may wait on one board.
"""

from typing import Final, Literal

from septet.contracts.names import Stage, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.system.text import cut


def board_id(task_queue: str) -> str:
    """Return the id of the board of a queue."""
    return f"{task_queue}-board"


class SeatRequest(Wire):
    """A work order's request for a seat."""

    id: str
    project: str
    score: int
    since: float
    """The start of the wait, in seconds since the epoch."""


class HostCapacity(Wire):
    """A host's report that it serves work orders, with its limits."""

    host: str
    host_limit: int
    """The number of work orders that may run at a time for this host."""
    project_limit: int
    """The number of work orders of one project that may run at a time."""
    seconds: float
    """The seconds after which the host no longer counts, if the host sends no other report."""


class BoardState(Wire):
    """The state that the board's workflow passes to its next run."""

    waiting: tuple[tuple[str, str, int, float], ...] = ()
    """The waiting work orders, each with its id, project, score and the start of its wait."""
    holders: tuple[tuple[str, str], ...] = ()
    """The work orders that may run (have a seat), each with its id and project."""
    hosts: tuple[tuple[str, int, float], ...] = ()
    """The hosts that serve work orders, each with its id, its limit, and the time until which the host counts."""
    project_limit: int = 0
    passed_over: bool = False
    """Whether more work orders wait than the board remembers."""


class KnownOrders(Wire):
    """The work orders that the board already knows, sent with a request for others."""

    ids: tuple[str, ...] = ()
    limit: int = 0
    """The most work orders that the board can add."""
    project_limit: int = 1
    """The number of work orders of one project that may run at a time; it decides which work order runs next."""


class WaitingOrders(Wire):
    """Waiting work orders that the board does not know yet."""

    waiting: tuple[SeatRequest, ...] = ()
    all: bool = True
    """Whether no further such work order waits."""


Until = Literal["merged", "completed", "closed"]


class OthersLook(Wire):
    """A request to check whether other work orders have reached the state `until`."""

    id: str
    """The work order that waits for the other work orders."""
    after: tuple[str, ...]
    until: Until


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
    """Return whether two rows of a task differ in a field that only the memo has."""
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
    """Return the task of a new work order, which begins at once if `waits` is `None`; `now` is ISO 8601, UTC."""
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
