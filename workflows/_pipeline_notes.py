"""What a pipeline keeps on disk as it goes: both documents of results, and the report at its end."""

import asyncio
from datetime import timedelta
from typing import Final, TypedDict

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from activities.lanes import Lanes
from activities.pipelines import Pipelines
from septet.contracts.lanes import CloseLanes
from septet.contracts.pipeline_view import PipelineView
from workflows._pipeline_story import PipelineStory

_WITHIN: Final = timedelta(minutes=2)
_IN_ALL: Final = timedelta(minutes=15)
_RETRIES: Final = RetryPolicy(maximum_interval=timedelta(seconds=30), maximum_attempts=10)


class _Options(TypedDict):
    task_queue: str | None
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    retry_policy: RetryPolicy


class Notes:
    """The notes of one pipeline: one writer, in the order in which things happened."""

    def __init__(self, story: PipelineStory) -> None:
        """Begin with nothing to write."""
        self._story = story
        self._changed: list[str] = []
        self._writing: asyncio.Task[None] | None = None

    def note(self, issue_id: str) -> None:
        """Have it written what is known of an issue now."""
        if issue_id not in self._changed:
            self._changed.append(issue_id)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def written(self) -> None:
        """Wait until all is written."""
        await workflow.wait_condition(lambda: self._writing is None or self._writing.done())

    async def close(self) -> None:
        """Close the agents' lanes, and write the report: neither keeps the other from being done."""
        await self.written()
        await self._close_lanes()
        try:
            await workflow.execute_activity_method(
                Pipelines.write_report, self._story.view(), summary="the report", **self._options()
            )
        except ActivityError as error:
            workflow.logger.warning("report_not_written", extra={"why": str(error.cause)})

    async def _close_lanes(self) -> None:
        lanes = tuple(lane.id for lane in self._story.lanes.values() if lane.task_queue)
        if not lanes:
            return
        try:
            await workflow.execute_activity_method(
                Lanes.close_lanes,
                CloseLanes(pipeline=self._story.id, lanes=lanes),
                summary="the agents are closed",
                **self._options(),
            )
        except ActivityError as error:
            workflow.logger.warning("lanes_not_closed", extra={"why": str(error.cause)})

    def _options(self) -> _Options:
        """Return how an activity on the planner's host is asked for: one that is gone is not waited for."""
        return _Options(
            task_queue=self._story.planner.task_queue or None,
            start_to_close_timeout=_WITHIN,
            schedule_to_close_timeout=_IN_ALL,
            retry_policy=_RETRIES,
        )

    async def _write(self) -> None:
        while self._changed:
            names, self._changed = self._changed, []
            view = self._story.view()
            some = tuple(self._story.issues[name] for name in names)
            await self._note(view.model_copy(update={"issues": some}))

    async def _note(self, some: PipelineView) -> None:
        try:
            await workflow.execute_activity_method(
                Pipelines.note_results,
                some,
                **self._options(),
                summary=f"results of {', '.join(issue.issue_id for issue in some.issues)}"[:200],
            )
        except ActivityError as error:
            workflow.logger.warning("results_not_noted", extra={"why": str(error.cause)})
