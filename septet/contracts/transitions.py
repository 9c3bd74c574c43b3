"""Which moves of a work order are allowed: one table for the workflow, the clients and the documents."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from septet.contracts.names import Stage, Status
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError


class Target(StrEnum):
    """Where a person may want a work order: a stage of the board, or its end."""

    COLLECTED = "collected"
    TRIAGED = "triaged"
    EXECUTING = "executing"
    REVIEW = "review"
    DONE = "done"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


ALLOWED: Final[Mapping[tuple[Status, Stage], tuple[Target, ...]]] = MappingProxyType(
    {
        (Status.PENDING, Stage.COLLECTED): (Target.TRIAGED, Target.BLOCKED, Target.CANCELLED),
        (Status.PENDING, Stage.TRIAGED): (
            Target.COLLECTED,
            Target.EXECUTING,
            Target.BLOCKED,
            Target.CANCELLED,
        ),
        (Status.PENDING, Stage.BLOCKED): (Target.COLLECTED, Target.TRIAGED, Target.CANCELLED),
        (Status.RUNNING, Stage.EXECUTING): (Target.BLOCKED, Target.CANCELLED),
        (Status.WAITING, Stage.EXECUTING): (Target.BLOCKED, Target.CANCELLED),
        (Status.WAITING, Stage.BLOCKED): (Target.EXECUTING, Target.CANCELLED),
        (Status.COMPLETED, Stage.REVIEW): (Target.EXECUTING, Target.DONE, Target.BLOCKED),
        (Status.COMPLETED, Stage.EXECUTING): (Target.REVIEW, Target.DONE, Target.BLOCKED),
        (Status.COMPLETED, Stage.BLOCKED): (Target.EXECUTING, Target.DONE),
        (Status.FAILED, Stage.BLOCKED): (Target.EXECUTING, Target.CANCELLED),
    }
)
"""By status and stage; what is not here stays where it is. One that waits in `blocked` waits for a host."""


def targets_of(status: Status, stage: Stage) -> tuple[Target, ...]:
    """Return where a work order may move from here."""
    return ALLOWED.get((status, stage), ())


_FINISHED: Final = "It is finished and cannot be moved."


def _way_on(task: Task) -> str:
    if task.status is Status.CANCELLED or task.has_plan_alone:
        return f"It has ended. `septet retry {task.id}` continues it."
    return _FINISHED


def check_move(task: Task, to: Target) -> None:
    """See that a move is allowed.

    Raises:
        RefusedTransitionError: It is not; the remedy lists what is.
    """
    targets = targets_of(task.status, task.stage)
    if to not in targets:
        raise RefusedTransitionError(
            f"{task.id} is in {task.stage.value} ({task.status.value}) and cannot move to {to.value}.",
            remedy=f"From here it can move to: {', '.join(targets)}." if targets else _way_on(task),
        )
