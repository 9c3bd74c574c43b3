"""Write a pipeline's files: the results of planning and execution while it runs, and a report at its end."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from septet.contracts.lanes import CloseLanes
from septet.pipelines.schedule import CLOSED
from septet.pipelines.views import IssueState, NotedIssues, PipelineView
from workflows.pipeline.state import PipelineState
from workflows.wire.activity_stubs import CLOSE_LANES, NOTE_RESULTS, WRITE_REPORT
from workflows.wire.policies import ActivityOptions

_NOTED_WITHIN: Final = timedelta(seconds=30)
"""The time-out for one write; after a worker's death, another attempt follows."""


class Notes:
    """Writes the notes of one pipeline, which are files on the planner's host, in the order of events.

    If that host is gone, the notes begin again on another host, with all known issues.
    """

    def __init__(self, state: PipelineState) -> None:
        """Create the writer; earlier runs of the pipeline may have written notes already."""
        self._state = state
        self._unwritten: list[str] = []
        self._writing: asyncio.Task[None] | None = None
        before = state.request.carried.noted if state.request.carried else None
        self._host_queue = before.queue if before else state.planner.task_queue
        """The task queue of the host that has the notes; empty if no host has any yet."""
        self._host_issues: dict[str, IssueState] = {}
        """For each issue's id, the state that the notes show."""
        if before:
            self._host_issues = {
                name: state.issues[name] for name in _closed_issues(state) if name not in before.lacks
            }
        self._gone_queues: set[str] = set()
        """The task queues that no worker has served for too long."""

    def note(self, issue_id: str) -> None:
        """Add an issue's present state to the notes, in the background."""
        if issue_id not in self._unwritten:
            self._unwritten.append(issue_id)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def wait_until_written(self) -> None:
        """Wait until all notes are written."""
        await workflow.wait_condition(lambda: self._writing is None or self._writing.done())

    def noted_issues(self) -> NotedIssues:
        """Return the facts about the notes that the pipeline's next workflow run needs."""
        outdated = set(self._find_outdated())
        return NotedIssues(
            queue=self._host_queue, lacks=tuple(name for name in _closed_issues(self._state) if name in outdated)
        )

    async def close(self) -> None:
        """Close the agents' lanes and write the report; a failure of one does not prevent the other."""
        await self.wait_until_written()
        queues: dict[str, list[str]] = {}
        for lane in self._state.lanes.values():
            if lane.task_queue and lane.task_queue not in self._gone_queues:
                queues.setdefault(lane.task_queue, []).append(lane.id)
        closing = [
            CLOSE_LANES.start(
                CloseLanes(pipeline=self._state.id, lanes=tuple(lanes)),
                summary="the agents are closed",
                task_queue=queue,
                **_options(timedelta(minutes=2)),
            )
            for queue, lanes in queues.items()
        ]
        for queue, each in zip(queues, closing, strict=True):
            await self._wait_for_end(each, queue, "lanes_not_closed")
        queue = self._queue
        unknown = self._find_outdated() if queue and queue == self._host_queue else self._state.issues
        writing = WRITE_REPORT.start(
            self._state.view_of(unknown), summary="the report", task_queue=queue or None, **_options()
        )
        await self._wait_for_end(writing, queue, "report_not_written")

    def _find_outdated(self) -> list[str]:
        return [name for name in self._state.issues if self._host_issues.get(name) != self._state.issue_view(name)]

    @property
    def _queue(self) -> str:
        """The queue of the planner's host, or of another lane's host if the first is gone; empty if unknown."""
        lanes = (self._state.planner, *self._state.executors)
        return next((lane.task_queue for lane in lanes if lane.task_queue not in self._gone_queues), "")

    async def _write(self) -> None:
        while self._unwritten:
            names, self._unwritten = self._unwritten, []
            queue = self._queue
            if queue != self._host_queue:
                names = [
                    each.issue_id
                    for each in self._state.issues.values()
                    if each.planned_at is not None or each.status in CLOSED
                ]
            some = self._state.view_of(names)
            if await self._write_note(some, queue):
                earlier = self._host_issues if queue == self._host_queue else {}
                self._host_queue, self._host_issues = (
                    queue,
                    earlier | {issue.issue_id: issue for issue in some.issues},
                )
            elif queue != self._queue:
                self._unwritten = [*names, *(name for name in self._unwritten if name not in names)]

    async def _write_note(self, some: PipelineView, queue: str) -> bool:
        """Write the states of the issues in `some` into the notes; return whether the host has written them."""
        names = ", ".join(issue.issue_id for issue in some.issues)
        noting = NOTE_RESULTS.start(
            some, task_queue=queue or None, **_options(), summary=f"results of {names}"[:200]
        )
        await workflow.wait_condition(lambda: noting.done() or self._queue != queue)
        if not noting.done():
            noting.cancel()
        return await self._wait_for_end(noting, queue, "results_not_noted")

    async def _wait_for_end(self, doing: workflow.ActivityHandle[None], queue: str, otherwise: str) -> bool:
        """Return whether an activity succeeds; if not, log `otherwise`. Record a host without a worker as gone."""
        try:
            await doing
        except ActivityError as error:
            late = isinstance(error.cause, ActivityTimeoutError) and error.cause.type
            if late and late is not TimeoutType.START_TO_CLOSE:
                self._gone_queues.add(queue)
            workflow.logger.warning(otherwise, extra={"why": str(error.cause)})
            return False
        return True


def _closed_issues(state: PipelineState) -> list[str]:
    return [name for name, issue in state.issues.items() if issue.status in CLOSED]


def _options(within: timedelta = _NOTED_WITHIN) -> ActivityOptions:
    """Return the options of an activity that must not wait for a gone host."""
    return ActivityOptions(
        start_to_close_timeout=within,
        schedule_to_close_timeout=timedelta(minutes=15),
        retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30), maximum_attempts=10),
    )
