"""Read the board from the Temporal server's lists, without a worker: pages of tasks, and counts by stage."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from clients.executions.index import count_before, page_of, taken_up_again
from clients.executions.messages import server_refusals
from clients.executions.task_rows import task_of_row
from clients.executions.typed_client import error_of
from septet.contracts.names import Stage, Status
from septet.contracts.replies import BoardReply, BoardSummary
from septet.contracts.task import Task
from septet.errors import InvalidInputError

TASKS_AT_ONCE: Final = 500

_ORDERS: Final = 'WorkflowType="WorkOrder"'
_WATCHES: Final = 'WorkflowType="PullRequest" AND ExecutionStatus IN ("Running", "Completed")'
_ROWS: Final = (
    f'(({_ORDERS} AND (SeptetStage IS NULL OR SeptetStage!="review")) OR ({_WATCHES} AND SeptetStage IS NOT NULL))'
)
"""The query for the board's workflows. A completed work order appears as its watch: its own stage stays `review`
forever."""
_FAILED: Final = 'ExecutionStatus IN ("Failed", "TimedOut")'
_ENDED: Final = 'ExecutionStatus IN ("Canceled", "Terminated")'
_PLANNED: Final = '(ExecutionStatus="Completed" AND SeptetStage="done")'
"""The query for completed work orders that made only a plan, and therefore have no watch."""
_STAGES: Final[Mapping[Stage, str]] = {
    **{
        stage: f'{_ORDERS} AND ExecutionStatus="Running" AND SeptetStage="{stage}"'
        for stage in (Stage.COLLECTED, Stage.TRIAGED)
    },
    Stage.EXECUTING: (
        f'(({_ORDERS} AND ExecutionStatus="Running" AND SeptetStage="executing") '
        f'OR ({_WATCHES} AND SeptetStage="executing"))'
    ),
    Stage.REVIEW: f'{_WATCHES} AND SeptetStage="review"',
    Stage.DONE: f'(({_ORDERS} AND ({_ENDED} OR {_PLANNED})) OR ({_WATCHES} AND SeptetStage="done"))',
    Stage.BLOCKED: (
        f"(({_ORDERS} AND ({_FAILED} "
        f'OR (ExecutionStatus="Running" AND SeptetStage="blocked"))) OR ({_WATCHES} AND SeptetStage="blocked"))'
    ),
}
"""The query for each stage. A terminated work order could not record its end, so the status of its execution
overrides its attributes. A pull request is in `executing` while agents answer its review."""
_COMPLETED: Final = f"(({_ORDERS} AND {_PLANNED}) OR ({_WATCHES} AND SeptetStage IS NOT NULL))"
"""The query for tasks with status `completed`, in any state of the pull request."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The number of tasks in each stage, and of completed tasks."""

    stages: dict[Stage, int]
    completed: int

    def plus(self, other: "TaskCounts") -> "TaskCounts":
        """Return the sum of these counts and the other counts."""
        stages = {stage: count + other.stages[stage] for stage, count in self.stages.items()}
        return TaskCounts(stages, self.completed + other.completed)


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of the board's tasks, newest first, each once."""

    tasks: tuple[Task, ...]
    next: str | None
    """The `after` of the next page; `None` for the last page."""


@dataclass(frozen=True, slots=True)
class BoardRows:
    """Reads the board of one Temporal namespace."""

    client: Client

    async def page(
        self,
        project: str | None = None,
        *,
        after: str = "",
        limit: int = TASKS_AT_ONCE,
        closed_within: timedelta | None = None,
    ) -> BoardReply:
        """Return a page of tasks by stage, and the number of all tasks in each stage.

        `after` is the `next` of the previous page. With `closed_within`, the page omits tasks that were done
        longer ago.

        Raises:
            NotFoundError: `after` is not the `next` of a page.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        since = datetime.now(UTC) - closed_within if closed_within is not None else None
        rows = await self.rows(project, after=after, limit=limit, since=since)
        stages = {stage: tuple(task for task in rows.tasks if task.stage is stage) for stage in Stage}
        if after or rows.next is not None:
            counts = await self.counts(project)
        else:
            completed = sum(task.status is Status.COMPLETED for task in rows.tasks)
            counts = TaskCounts({stage: len(tasks) for stage, tasks in stages.items()}, completed)
            if since is not None:
                counts = counts.plus(await self.counts(project, until=since))
        summary = BoardSummary(
            total=sum(counts.stages.values()),
            in_progress=counts.stages[Stage.EXECUTING],
            blocked=counts.stages[Stage.BLOCKED],
            completed=counts.completed,
        )
        return BoardReply(project=project, stages=stages, counts=counts.stages, summary=summary, next=rows.next)

    async def rows(
        self,
        project: str | None = None,
        *,
        after: str = "",
        limit: int = TASKS_AT_ONCE,
        since: datetime | None = None,
    ) -> TaskPage:
        """Return a page of tasks, without tasks that were done before `since`.

        Raises:
            NotFoundError: `after` is not the `next` of a page.
            InvalidInputError: The project's name has a character that a query cannot contain.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        query = _of_project(project, _ROWS + _and_recent(since))
        rows, following = await page_of(self.client, query, after=after, limit=limit)
        tasks: dict[str, Task] = {}
        for row in rows:
            task = await task_of_row(row)
            tasks.setdefault(task.id, await self._with_reason(task, row))
        return TaskPage(tuple(tasks.values()), following)

    async def _with_reason(self, task: Task, row: WorkflowExecution) -> Task:
        """Return a task with its error; if the task recorded no error, read the error from the workflow."""
        if row.status is not WorkflowExecutionStatus.FAILED or task.error is not None:
            return task
        try:
            await self.client.get_workflow_handle(row.id, run_id=row.run_id).result(follow_runs=False)
        except WorkflowFailureError as failure:
            return task.model_copy(update={"error": error_of(failure.cause)})
        except RPCError:  # the run is removed at this moment
            return task
        return task

    async def all(self, project: str | None = None) -> AsyncIterator[Task]:
        """Yield all tasks of the board, newest first, each once.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses.
        """
        ids: set[str] = set()
        after: str | None = ""
        while after is not None:
            page = await self.rows(project, after=after)
            for task in page.tasks:
                if task.id not in ids:
                    ids.add(task.id)
                    yield task
            after = page.next

    async def counts(self, project: str | None = None, *, until: datetime | None = None) -> TaskCounts:
        """Count the tasks; with `until`, count only tasks that were done by this time.

        A work order that was reset counts once, although the server keeps its earlier runs too.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses.
        """
        queries = [f"{query}{_and_earlier(until)}" for query in (*_STAGES.values(), _COMPLETED)]
        with server_refusals():
            failed, ended, planned = await self._closed_before(project, until)
            counts = (self.client.count_workflows(_of_project(project, query)) for query in queries)
            found = await asyncio.gather(*counts)
        *numbers, completed = (each.count for each in found)
        stages = dict(zip(_STAGES, numbers, strict=True))
        stages[Stage.BLOCKED] -= failed
        stages[Stage.DONE] -= ended + planned
        return TaskCounts({stage: max(stages[stage], 0) for stage in Stage}, max(completed - planned, 0))

    async def _closed_before(self, project: str | None, until: datetime | None) -> list[int]:
        """Return the numbers of replaced runs that (1) failed, (2) were cancelled or terminated, (3) only planned.

        Call this method before the runs are counted, so that a task that closes meanwhile is not subtracted.
        """
        last = await taken_up_again(self.client, _of_project(project, ""))
        kinds = (_FAILED, _ENDED, _PLANNED)
        queries = (_of_project(project, f" AND {kind}{_and_earlier(until)}") for kind in kinds)
        return await asyncio.gather(*(count_before(self.client, last, query) for query in queries))


def _and_recent(since: datetime | None) -> str:
    """Return a query's condition for tasks that run, that failed, or that ended after `since`."""
    if since is None:
        return ""
    return f' AND (ExecutionStatus="Running" OR {_FAILED} OR CloseTime>"{since.isoformat()}")'


def _and_earlier(until: datetime | None) -> str:
    """Return a query's condition for tasks that ended by `until`, without failed tasks."""
    return f' AND NOT {_FAILED} AND CloseTime<="{until.isoformat()}"' if until is not None else ""


def _of_project(project: str | None, query: str) -> str:
    if project is None:
        return query
    if '"' in project or "\\" in project:
        why = "the server finds no name with a double quote or a backslash"
        message = f"project: {project!r} cannot be asked for: {why}."
        raise InvalidInputError(message, remedy="Look at the whole board.")
    return f'{query} AND SeptetProject="{project}"'
