"""The workflows for a tracker's conversations (*sessions*): start work orders, report ends, obey messages."""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
)
from temporalio.workflow import ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.names import Status
    from septet.contracts.order import WorkOrderInput
    from septet.contracts.task import Task
    from septet.contracts.task_rows import MEMO, first_task, row_of, waits_in
    from septet.contracts.tracker import (
        MessageKind,
        SessionMessage,
        SessionPrompted,
        SessionStarted,
        TakeTrackedIssue,
        TrackedClaim,
        TrackedIssue,
    )
    from septet.system.text import cut, timestamp
    from septet.trackers.words import GREETING, TAKEN, cancelled_message, completed_message, failed_message
    from workflows.intake import OPTIONS
    from workflows.wire.activity_stubs import OBEY_PROMPT, TAKE_TRACKED_ISSUE, TELL_SESSION
    from workflows.wire.policies import ActivityOptions
    from workflows.wire.search_attributes import start_attributes

_AT_ONCE: Final = ActivityOptions(
    start_to_close_timeout=timedelta(seconds=60),
    schedule_to_close_timeout=timedelta(days=1),
    heartbeat_timeout=timedelta(seconds=20),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=0.5), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=1)
    ),
)
"""The options for a session's greeting; Linear treats an agent that posts nothing for ten seconds as dead."""


@workflow.defn(name="TrackerSession")
class TrackerSession:
    """One session: greet at once, start at most one work order for the issue, and report how it ends.

    A mark on the issue records the claim, even after Temporal has deleted the work order.
    """

    def __init__(self) -> None:
        self._stop: SessionPrompted | None = None

    @workflow.signal(name="stop")
    def stop(self, prompt: SessionPrompted) -> None:
        """Start no work order from now on, and cancel a work order that was just started."""
        self._stop = prompt

    @workflow.run
    async def run(self, event: SessionStarted) -> str:
        """Greet, claim the issue, start its work order, and report the end; return the work order's id, if any."""
        issue = event.issue
        await _tell(issue, "greeting", "thought", GREETING, _AT_ONCE)
        if self._who_stopped() is not None:
            await _tell(issue, "stopped", "response", "Stopped before anything was started.")
            return ""
        info = workflow.info()  # after Temporal forgets a session, its first run is another
        request = TakeTrackedIssue(issue=issue, claimant=f"{info.workflow_id}/{info.first_execution_run_id}")
        claim = await TAKE_TRACKED_ISSUE.start(request, **OPTIONS, summary=f"take {issue.key}")
        if claim.why_not:
            await _tell(issue, "refused", "error", claim.why_not)
            return ""
        workflow.set_current_details(f"**{issue.key}** · `{claim.order_id}` · {claim.repository}")
        order = await _start(claim) if claim.is_own else None
        if order is None:
            await _tell(issue, "taken", "response", TAKEN.format(claim.order_id))
            return claim.order_id
        text = f"Work order `{claim.order_id}` was started in {claim.repository}."
        await _tell(issue, f"{claim.order_id}/started", "thought", text)
        if (stop := self._who_stopped()) is not None:
            await OBEY_PROMPT.start(stop, **OPTIONS, summary="stop")
        await TELL_SESSION.start(await _end_of(order, claim), **OPTIONS, summary="how it ended")
        return claim.order_id

    def _who_stopped(self) -> SessionPrompted | None:
        """Return a person's request to stop, which may arrive during any wait; `None` for no request."""
        return self._stop


@workflow.defn(name="TrackerPrompt")
class TrackerPrompt:
    """One message of a person in a session; the workflow's id names the message, so the message is obeyed once."""

    @workflow.run
    async def run(self, prompt: SessionPrompted) -> str:
        """Obey the message, write the reply in the session, and return the reply."""
        if prompt.is_stop:
            with suppress(ApplicationError):  # the session is over
                handle = workflow.get_external_workflow_handle(
                    f"session/{prompt.issue.tracker}/{prompt.issue.session}"
                )
                await handle.signal("stop", prompt)
        message = await OBEY_PROMPT.start(prompt, **OPTIONS, summary="what somebody answered")
        workflow.set_current_details(message.text)
        await TELL_SESSION.start(message, **OPTIONS, summary="answer")
        return message.text


@workflow.defn(name="TrackerReport")
class TrackerReport:
    """Sends a report on a work order to a session whose workflow has ended."""

    @workflow.run
    async def run(self, message: SessionMessage) -> None:
        """Send the report; the tracker gets the report only once."""
        await TELL_SESSION.start(message, **OPTIONS, summary=message.kind)


async def _start(claim: TrackedClaim) -> ChildWorkflowHandle[object, Task] | None:
    """Start the work order of a claimed issue, and return its handle; `None` if the work order exists already."""
    order = WorkOrderInput(
        repository=claim.repository,
        tracker=claim.issue,
        agent=claim.agent,
        stage="triaged",
        approve_plan=claim.approve_plan,
    )
    row = row_of(first_task(claim.order_id, order, waits_in(order), timestamp(workflow.now())))
    try:
        return await workflow.start_child_workflow(
            "WorkOrder",
            order,
            id=claim.order_id,
            result_type=Task,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=ParentClosePolicy.ABANDON,
            memo={MEMO: row},
            search_attributes=start_attributes(row),
            static_summary=f"{order.repository} {claim.issue.key}"[:200],
        )
    except WorkflowAlreadyStartedError:
        return None


async def _end_of(order: ChildWorkflowHandle[object, Task], claim: TrackedClaim) -> SessionMessage:
    try:
        return completed_message(claim.issue, await order)
    except ChildWorkflowError as error:
        cause = error.cause
        if isinstance(cause, CancelledError):
            return cancelled_message(claim.issue, claim.order_id)
        words = cause.message if isinstance(cause, ApplicationError) else f"{cause or error}"
        return failed_message(claim.issue, claim.order_id, words)


async def _tell(
    issue: TrackedIssue, key: str, kind: MessageKind, text: str, options: ActivityOptions = OPTIONS
) -> None:
    await TELL_SESSION.start(
        SessionMessage(issue=issue, key=key, kind=kind, text=cut(text, 4000)), **options, summary=kind
    )


async def report_failure(task: Task, issue: TrackedIssue | None) -> None:
    """Report the failure of a retried work order to the tracker, in a separate workflow; do not wait for it."""
    if issue is None or not issue.session or task.status is not Status.FAILED or task.error is None:
        return
    why = f"{task.error.message} {task.error.remedy}".strip()
    with suppress(FailureError):  # the report was started before
        await workflow.start_child_workflow(
            TrackerReport.run,
            failed_message(issue, task.id, why, task.updated_at),
            id=f"{task.id}/failed/{task.updated_at}",
            parent_close_policy=ParentClosePolicy.ABANDON,
            static_summary=f"{issue.key}: {task.id} failed again",
        )
