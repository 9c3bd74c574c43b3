"""The workflow that notifies people of a work order; it outlives the work order, which never waits for its end."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from septet.contracts.task import Notification
    from workflows.wire.activity_stubs import SEND_NOTIFICATION
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
"""The options of sending: a notification outlasts a receiver's outage of a night, and after a day is out of
date."""


@workflow.defn(name="Notification")
class NotificationWorkflow:
    """One notification; the workflow runs until a receiver has accepted it."""

    @workflow.run
    async def run(self, notification: Notification) -> None:
        """Send the notification from the host of the work order, with retries until a receiver has accepted it."""
        await SEND_NOTIFICATION.start(notification, task_queue=notification.task_queue, **_OPTIONS)
