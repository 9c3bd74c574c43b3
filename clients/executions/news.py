"""Wait for new events in a workflow's history by a long poll of the server.

A read of a history is free, but each query is a billable Action, so callers query a worker only after new events.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from septet.contracts.names import READ_OUTGOING, Step

_STEPS: Final = frozenset(step.value for step in Step)
_IN_STEPS: Final = frozenset({"finalize_json", READ_OUTGOING})
"""The activities that count as part of the step before them."""
_AGAIN_SECONDS: Final = 1.0
"""The pause after a server's refusal, and between two runs of one workflow."""
_LONGEST_SECONDS: Final = 30.0
"""The longest pause before a caller repeats a query that got no answer."""
_NEWS: Final = frozenset({
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
})  # fmt: skip
"""The types of events after which a query's answer may differ, or another run answers."""
_ENDS: Final = (
    "activity_task_completed_event_attributes",
    "activity_task_failed_event_attributes",
    "activity_task_timed_out_event_attributes",
    "activity_task_canceled_event_attributes",
)


@dataclass(slots=True)
class News:
    """Reports new events in the history of one workflow, across all of its runs."""

    handle: WorkflowHandle[Any, Any]
    running_step: str = ""
    has_results: bool = False
    """Whether a step has ended in the workflow; if so, a query's answer must contain steps."""
    _grown: asyncio.Event = field(default_factory=asyncio.Event)
    _steps: dict[int, str] = field(default_factory=dict)
    """The running steps, by the number of the event that scheduled the step."""
    _last_step: str = ""
    _pause: float = 2.0

    async def come_within(self, seconds: float) -> bool:
        """Wait at most `seconds` for a new event; return whether an event came since the last wait."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._grown.wait(), seconds)
        is_news = self._grown.is_set()
        self._grown.clear()
        return is_news

    def come_again(self) -> None:
        """Make `come_within` return true after a pause, to repeat an unanswered query; each pause is longer."""
        asyncio.get_running_loop().call_later(self._pause, self._grown.set)
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)

    async def follow(self) -> None:
        """Read the history of the workflow's current run, and then of each later run, until the caller cancels."""
        while True:
            with suppress(RPCError):  # the caller reads from the server too, and reports the error
                await self._follow_run()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _follow_run(self) -> None:
        pages = self.handle.fetch_history_events(wait_new_event=True)
        self._steps.clear()
        while True:
            await pages.fetch_next_page()
            events = pages.current_page or ()
            for event in events:
                self._note_step(event)
            if any(event.event_type in _NEWS for event in events):
                self.running_step = next(reversed(self._steps.values()), "")
                self._grown.set()
            if pages.next_page_token is None:
                return

    def _note_step(self, event: HistoryEvent) -> None:
        kind = event.WhichOneof("attributes")
        if kind == "activity_task_scheduled_event_attributes":
            name = event.activity_task_scheduled_event_attributes.activity_type.name
            if name in _STEPS or name in _IN_STEPS:
                self._last_step = name if name in _STEPS else self._last_step
                self._steps[event.event_id] = self._last_step
        elif kind in _ENDS:
            ended = self._steps.pop(getattr(event, kind).scheduled_event_id, "")
            self.has_results = self.has_results or bool(ended)


@asynccontextmanager
async def follow_workflow(handle: WorkflowHandle[Any, Any]) -> AsyncIterator[News]:
    """Follow a workflow's history during the block, and yield a `News`, which reports new events."""
    news = News(handle)
    task = asyncio.create_task(news.follow())
    try:
        yield news
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
