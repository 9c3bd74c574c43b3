"""The board: reports to it, what it remembers, and the short row of each work order.

Values are short, because ten thousand work orders may wait.
"""

from typing import Final, Literal

from septet.contracts.names import Stage, Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Task, TaskError
from septet.contracts.wire import Wire
from septet.system.text import cut


def board_id(task_queue: str) -> str:
    """Return the id of the board of a queue."""
    return f"{task_queue}-board"


class SeatRequest(Wire):
    """A work order waits for its turn."""

    id: str
    project: str
    score: int
    since: float
    """Seconds since the epoch."""


class HostCapacity(Wire):
    """A host serves."""

    host: str
    host_limit: int
    """Work orders that may run at a time for this host."""
    project_limit: int
    """Work orders of one project that may run at a time."""
    seconds: float
    """After so many without another word the host counts no more."""


class BoardState(Wire):
    """What the board knows, from one of its runs to the next."""

    waiting: tuple[tuple[str, str, int, float], ...] = ()
    """Of each: id, project, score, since."""
    holders: tuple[tuple[str, str], ...] = ()
    """Of each: id, project."""
    hosts: tuple[tuple[str, int, float], ...] = ()
    """Of each: id, limit, until when it counts."""
    project_limit: int = 0
    passed_over: bool = False
    """More wait than are remembered."""


class KnownOrders(Wire):
    """Which work orders the board knows."""

    ids: tuple[str, ...] = ()
    limit: int = 0
    """The most that it can take in."""
    project_limit: int = 1
    """How many of a project may run at a time: who may have a turn first depends on it."""


class WaitingOrders(Wire):
    """What waits on the board, as its server tells."""

    waiting: tuple[SeatRequest, ...] = ()
    all: bool = True
    """Whether there are no more."""


Until = Literal["merged", "completed", "closed"]


class OthersLook(Wire):
    """Ask whether other work orders are over."""

    id: str
    """The one that waits."""
    after: tuple[str, ...]
    until: Until


MEMO: Final = "task"
"""The key of a workflow's memo under which the row of its task lies."""
DESCRIPTION_LIMIT: Final = 200
_TITLE_LIMIT: Final = 300
_MESSAGE_LIMIT: Final = 500
_RESCUES: Final = 3
_ONLY_IN_MEMO: Final = ("title", "error", "rework", "budget")
"""What the search attributes of a task do not tell, and people look for."""


def row_of(task: Task) -> Task:
    """Return a task without its steps, and with its texts cut."""
    return task.model_copy(
        update={
            "steps": (),
            "title": cut(task.title, _TITLE_LIMIT),
            "description": cut(task.description, DESCRIPTION_LIMIT),
            "rescues": task.rescues[-_RESCUES:],
            "error": _cut_error(task.error) if task.error else None,
        }
    )


def differ_in_memo(row: Task, other: Task, *, with_branch: bool) -> bool:
    """Say whether two rows of a task differ in what only the memo tells."""
    names = (*_ONLY_IN_MEMO, "branch_name") if with_branch else _ONLY_IN_MEMO
    return any(getattr(row, name) != getattr(other, name) for name in names)


def differ_but_in_time(row: Task, other: Task) -> bool:
    """Say whether two rows of a task differ in more than the time at which they were written."""
    return row != other.model_copy(update={"updated_at": row.updated_at})


def waits_in(order: WorkOrderInput) -> Stage | None:
    """Return the stage in which a work order waits on the board; `None`: it begins at once."""
    if order.stage is not None:
        return Stage(order.stage)
    return Stage.TRIAGED if order.after else None


def first_task(order_id: str, order: WorkOrderInput, waits: Stage | None, now: str) -> Task:
    """Return the task of a work order that has just been asked for.

    Args:
        order_id: Its id.
        order: What was asked for.
        waits: The stage in which it waits on the board; it begins at once where there is none.
        now: ISO 8601, UTC.
    """
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
        external_id=_external_id(order),
        issue_number=str(order.issue or ""),
        repository_url=order.repository,
        after=order.after,
        created_at=now,
        updated_at=now,
    )


def _external_id(order: WorkOrderInput) -> str:
    """Return what the issue is called where it lives; empty for one that was given as text."""
    return (order.tracker.key or order.tracker.id) if order.tracker is not None else str(order.issue or "")


def _cut_error(error: TaskError) -> TaskError:
    return error.model_copy(
        update={"message": cut(error.message, _MESSAGE_LIMIT), "remedy": cut(error.remedy, _MESSAGE_LIMIT)}
    )
