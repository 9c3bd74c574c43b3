"""The notification to people about a work order that needs a person, has failed or is completed."""

from typing import Final, Literal

from septet.contracts.names import Stage, Status
from septet.contracts.wire import Wire

NOTIFIES: Final = "notifies"
"""The name of the service of a host that notifies the address in its settings. A work order on a host without this
service schedules no notification."""
NotificationKind = Literal["waiting", "failed", "completed"]


class Notification(Wire):
    """One notification; repeated deliveries have the same id."""

    id: str
    """The id of the workflow that sends the notification: `<work order>/tell/<time>`."""
    kind: NotificationKind
    time: str
    """The time of the event: ISO 8601, UTC."""
    work_order_id: str
    title: str = ""
    project: str = ""
    repository_url: str = ""
    issue_number: str = ""
    status: Status
    stage: Stage
    reason: str = ""
    """Why the work order needs a person, or why it failed."""
    remedy: str = ""
    """The advice to a person: what to do next, with the commands; empty if no action is needed."""
    plan_path: str | None = None
    plan_sha256: str | None = None
    branch_name: str | None = None
    pr_url: str | None = None
    task_queue: str
    """The queue of the host that sends the notification."""
