"""Sessions of a tracker and replies in them on a real server, whose histories are kept for replay."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest
from fakes.running import replayed, result_of
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from septet.contracts.names import Status
from septet.contracts.task import Task
from septet.contracts.tracker import (
    SessionMessage,
    SessionPrompted,
    SessionStarted,
    TakeTrackedIssue,
    TrackedClaim,
    TrackedIssue,
)
from septet.trackers.words import failed_message
from workflows.tracker_session import TrackerPrompt, TrackerReport, TrackerSession

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUEUE: Final = "tracker-histories"
SESSIONS: Final = (
    "session-completed", "session-failed", "session-cancelled", "session-refused", "session-of-one-taken",
    "session-stopped-at-once", "session-stopped-as-it-starts",
)  # fmt: skip
PROMPTS: Final = ("prompt-approve", "prompt-stop")
REPORT: Final = "report-of-a-further-failure"
TRACKED: Final = (*SESSIONS, *PROMPTS, REPORT)


@workflow.defn(name="WorkOrder", sandboxed=False)
class OrderOfTracker:
    """A work order that ends at once, in the way that its id names."""

    @workflow.run
    async def run(self, order: RawValue) -> Task:
        del order
        order_id = workflow.info().workflow_id
        if "failed" in order_id:
            message = "the plan was not accepted"
            raise ApplicationError(message, non_retryable=True)
        if "cancelled" in order_id:
            raise asyncio.CancelledError
        return Task(id=order_id, status=Status.COMPLETED, pr_url="https://github.com/o/r/pull/1")


@pytest.mark.parametrize("name", TRACKED)
async def test_a_session_or_a_reply_goes_its_way(client: Client, name: str) -> None:
    """The workflow ends well with a last message to the session, and its history replays."""
    workflow_id = f"tracker-{name}-{uuid.uuid4().hex[:8]}"
    told: list[SessionMessage] = []

    @activity.defn(name="tell_session")
    async def tell_session(message: SessionMessage) -> None:
        told.append(message)

    @activity.defn(name="take_tracked_issue")
    async def take_tracked_issue(request: TakeTrackedIssue) -> TrackedClaim:
        if name == "session-stopped-as-it-starts":
            await client.get_workflow_handle(workflow_id).signal("stop", _prompt())
        refused = name == "session-refused"
        return TrackedClaim(
            issue=request.issue,
            is_own="taken" not in name and not refused,
            order_id=f"wo-{workflow_id}",
            repository="https://github.com/o/r",
            why_not="No repository is set for ENG-12." if refused else "",
        )

    @activity.defn(name="obey_prompt")
    async def obey_prompt(prompt: SessionPrompted) -> SessionMessage:
        return SessionMessage(issue=prompt.issue, key="answer", kind="thought", text="Done.")

    activities: list[Callable[..., Any]] = [tell_session, take_tracked_issue, obey_prompt]
    kinds = [TrackerSession, TrackerPrompt, TrackerReport, OrderOfTracker]
    async with Worker(client, task_queue=QUEUE, workflows=kinds, activities=activities):
        kind, content = _start_of(name)
        at_once = name.endswith("at-once")
        handle: WorkflowHandle[Any, Any] = await client.start_workflow(
            kind,
            content,
            id=workflow_id,
            task_queue=QUEUE,
            start_signal="stop" if at_once else None,
            start_signal_args=[_prompt()] if at_once else [],
        )
        await result_of(handle)
        await replayed(handle, f"tracker/{name}", *kinds)
    assert told


def _start_of(name: str) -> tuple[str, SessionStarted | SessionPrompted | SessionMessage]:
    """Return the workflow type and the input of a case."""
    if name == REPORT:
        return "TrackerReport", failed_message(
            _issue(), "wo-linear-eng-12", "the plan was not accepted", "2026-01-01T00:00:00Z"
        )
    if name in PROMPTS:
        return "TrackerPrompt", _prompt(is_stop=name == "prompt-stop")
    return "TrackerSession", SessionStarted(issue=_issue())


def _issue() -> TrackedIssue:
    return TrackedIssue(tracker="linear", id="0b4a", key="ENG-12", session="5e55")


def _prompt(*, is_stop: bool = True) -> SessionPrompted:
    body = "" if is_stop else f"approve {'0' * 64}"
    return SessionPrompted(issue=_issue(), prompt_id="11", author="Ada", body=body, is_stop=is_stop)
