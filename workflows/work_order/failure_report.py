"""Report the failure of a retry to the issue's session, whose own workflow knows only the first failure."""

from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import FailureError
from temporalio.workflow import ParentClosePolicy

from septet.contracts.names import Status
from septet.contracts.task import Task
from septet.contracts.tracker import TrackedIssue
from septet.trackers.words import failed_message
from workflows.intake.tracker_session import TrackerReport


async def report_failure(task: Task, issue: TrackedIssue | None) -> None:
    """Report the failure of a retry by a separate workflow; the work order does not wait for its end."""
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
