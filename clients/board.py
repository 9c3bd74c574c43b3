"""The board: tasks by stage, and how many there are."""

import asyncio
from collections.abc import Sequence

from clients.rows import PAGE, Rows
from septet.contracts.names import Stage, Status
from septet.contracts.replies import BoardReply, BoardSummary
from septet.contracts.task import Task


async def board_page(rows: Rows, project: str | None, *, after: str = "", limit: int = PAGE) -> BoardReply:
    """Return a page of the board, with the numbers of all of it.

    Where one page holds everything, its own rows are counted: then rows and numbers are of one moment.

    Raises:
        NotFoundError: `after` is no word of a page before.
        ServerNotReachedError: The server refused.
    """
    page, counts = await asyncio.gather(rows.page(project, after=after, limit=limit), rows.counts(project))
    whole = not after and page.next is None
    completed = sum(task.status is Status.COMPLETED for task in page.tasks) if whole else None
    return board_of(project, page.tasks, None if whole else counts, completed, page.next)


def board_of(
    project: str | None,
    tasks: Sequence[Task],
    counts: dict[Stage, int] | None = None,
    completed: int | None = None,
    following: str | None = None,
) -> BoardReply:
    """Return the board of some tasks.

    Args:
        project: The one that was asked for.
        tasks: Those of this page.
        counts: Of all pages; of these tasks alone where absent.
        completed: How many have a proven pull request; those in review and done where absent.
        following: Where the board goes on.
    """
    stages = {stage: tuple(task for task in tasks if task.stage is stage) for stage in Stage}
    counts = counts if counts is not None else {stage: len(found) for stage, found in stages.items()}
    return BoardReply(
        project=project,
        stages=stages,
        counts=counts,
        summary=BoardSummary(
            total=sum(counts.values()),
            in_progress=counts[Stage.EXECUTING],
            blocked=counts[Stage.BLOCKED],
            completed=completed if completed is not None else counts[Stage.REVIEW] + counts[Stage.DONE],
        ),
        next=following,
    )
