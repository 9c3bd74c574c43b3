"""Notify people that a work order waits for them, has failed, or is completed."""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.amounts import BudgetWait
    from septet.contracts.facts import tell_findings
    from septet.contracts.names import Status
    from septet.contracts.task import NOTIFIES, Notification, NotificationKind, Task
    from septet.contracts.workspace import Workspace
    from workflows.wire.activity_stubs import SEND_NOTIFICATION
    from workflows.wire.cancellation import wait_despite_cancel
    from workflows.wire.policies import ActivityOptions

_OPTIONS: Final = ActivityOptions(
    start_to_close_timeout=timedelta(seconds=30),
    schedule_to_close_timeout=timedelta(days=1),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2.0,
        maximum_interval=timedelta(minutes=10),
        maximum_attempts=0,
    ),
)
"""The options of sending: retries outlast a receiver's absence of a night, and end after a day."""


@workflow.defn(name="Notification")
class NotificationWorkflow:
    """Sends one notification."""

    @workflow.run
    async def run(self, notification: Notification) -> None:
        """Send the notification from the work order's host, until the receiver accepts it or a day is over."""
        await SEND_NOTIFICATION.start(notification, task_queue=notification.task_queue, **_OPTIONS)


class Notifications:
    """Sends one work order's notifications, each in a separate workflow.

    Only a host that serves notifications can send them. Without such a host, the history shows no trace of them.
    """

    def __init__(self) -> None:
        self._last: NotificationKind | None = None
        self._queue = ""
        self._told_limits: set[tuple[str, ...]] = set()
        self._starting: set[asyncio.Task[None]] = set()

    def learn_queue(self, queue: str) -> None:
        """Record the queue of a host that could not open the workspace, but can send notifications."""
        self._queue = queue

    def note(self, task: Task, workspace: Workspace | None) -> None:
        """Notify people of the work order's state, once per state."""
        queue = _queue_of(workspace) if workspace is not None else self._queue
        if not queue:
            return
        self._note(task, _kind_of(task), queue)

    def note_wait(self, task: Task, workspace: Workspace | None) -> None:
        """Notify people if a completed work order waits for them again, once per wait."""
        queue = _queue_of(workspace) if workspace is not None else ""
        if queue:
            self._note(task, "waiting" if task.budget is not None or task.findings else None, queue)

    async def settle(self) -> None:
        """Wait until all notifications have started, even if a person cancels meanwhile."""
        await wait_despite_cancel(lambda: all(each.done() for each in self._starting))

    def _note(self, task: Task, kind: NotificationKind | None, queue: str) -> None:
        if kind == self._last:
            return
        self._last = kind
        if kind is not None and (task.budget is None or self._is_news(task.budget)):
            self._starting.add(asyncio.create_task(_start(_notification(task, kind, queue))))

    def _is_news(self, wait: BudgetWait) -> bool:
        """Return whether to notify people of a wait: once for each limit that is used up, not for reservations."""
        limit = (wait.scope, wait.step, wait.limit, wait.until or "")
        is_news = wait.is_spent and limit not in self._told_limits
        if is_news:
            self._told_limits.add(limit)
        return is_news


def _queue_of(workspace: Workspace) -> str:
    """Return the queue for a workspace's notifications; empty if the host sends none."""
    return (workspace.control_queue or workspace.task_queue) if NOTIFIES in workspace.serves else ""


def _kind_of(task: Task) -> NotificationKind | None:
    waits_with_findings = task.status is Status.WAITING and bool(task.findings)
    if task.waits_for_a_decision or task.budget is not None or waits_with_findings:
        return "waiting"
    match task.status:
        case Status.FAILED:
            return "failed"
        case Status.COMPLETED:
            return "completed"
        case _:
            return None


def _notification(task: Task, kind: NotificationKind, queue: str) -> Notification:
    reason, remedy = "", ""
    if kind == "waiting" and task.budget is not None:
        reason, remedy = task.budget.message, task.budget.remedy
    elif kind == "waiting" and task.findings:
        allowed = " ".join(f"--finding {finding.id}" for finding in task.findings if finding.id)
        approve = f"Let it pass with `septet approve {task.id} {allowed}`, or have" if allowed else "Have"
        reason = f"{tell_findings(task.findings)}."
        remedy = f"{approve} the agent take it out with `septet reject {task.id} --feedback TEXT`."
    elif kind == "waiting":
        reason = f"The plan {task.plan_path} waits for approval."
        remedy = f"Approve it with `septet approve {task.id}`, or `septet reject {task.id} --feedback TEXT`."
    elif task.error is not None and kind == "failed":
        reason, remedy = task.error.message, task.error.remedy
    elif task.has_plan_alone:
        reason = f"The plan {task.plan_path} is ready."
        remedy = f"Continue with it: `septet retry {task.id}`."
    return Notification(
        id=f"{task.id}/tell/{task.updated_at}",
        kind=kind,
        time=task.updated_at,
        work_order_id=task.id,
        title=task.title[:200],
        project=task.project,
        repository_url=task.repository_url,
        issue_number=task.issue_number,
        status=task.status,
        stage=task.stage,
        reason=reason[:2000],
        remedy=remedy[:2000],
        plan_path=task.plan_path,
        plan_sha256=task.plan_sha256,
        branch_name=task.branch_name,
        pr_url=task.pr_url,
        task_queue=queue,
    )


async def _start(notification: Notification) -> None:
    try:
        await workflow.start_child_workflow(
            NotificationWorkflow.run,
            notification,
            id=notification.id,
            parent_close_policy=ParentClosePolicy.ABANDON,
            static_summary=f"{notification.work_order_id} {notification.kind}",
        )
    except FailureError:  # the notification was started before
        return
