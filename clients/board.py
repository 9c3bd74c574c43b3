"""The board: work orders by stage."""

from collections.abc import Iterable

from septet.contracts.names import Stage, Status
from septet.contracts.replies import BoardReply, BoardSummary
from septet.contracts.task import Task


def board_of(project: str | None, tasks: Iterable[Task]) -> BoardReply:
    """Return the board of the work orders that are given."""
    found = [task for task in tasks if project in (None, task.project)]
    stages = {stage: tuple(task for task in found if task.stage is stage) for stage in Stage}
    return BoardReply(
        project=project,
        stages=stages,
        counts={stage: len(tasks) for stage, tasks in stages.items()},
        summary=BoardSummary(
            total=len(found),
            in_progress=len(stages[Stage.EXECUTING]),
            blocked=len(stages[Stage.BLOCKED]),
            completed=sum(task.status is Status.COMPLETED for task in found),
        ),
    )
