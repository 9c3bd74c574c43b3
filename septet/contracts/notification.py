"""What people are told about a work order that needs them, has failed or is completed, outside of any face."""

from typing import Final, Literal

from septet.contracts.names import Stage, Status
from septet.contracts.wire import Wire

NOTIFIES: Final = "notifies"
"""The host tells the address that its settings name. Work orders on other hosts schedule nothing for it."""
NotificationKind = Literal["waiting", "failed", "completed"]


class Notification(Wire):
    """One thing to tell. However often it is sent, its id is the same."""

    id: str
    """The id of the workflow that has it sent: `<work order>/tell/<time>`."""
    kind: NotificationKind
    time: str
    """When it came to be so: ISO 8601, UTC."""
    work_order_id: str
    title: str = ""
    project: str = ""
    repository_url: str = ""
    issue_number: str = ""
    status: Status
    stage: Stage
    reason: str = ""
    """Why it needs someone, or why it failed."""
    remedy: str = ""
    """The commands that answer it."""
    plan_path: str | None = None
    plan_sha256: str | None = None
    branch_name: str | None = None
    pr_url: str | None = None
    task_queue: str
    """Where the host that tells it answers."""
