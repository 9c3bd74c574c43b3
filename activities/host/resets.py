"""Read from the server what a workflow's run was reset from: the run itself may not know it yet."""

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowHistoryEventFilterType
from temporalio.service import RPCError, RPCStatusCode


async def error_before_reset(client: Client, workflow_id: str, run_id: str) -> str:
    """Return the type of the error that ended the run from which this run was reset; empty without such an error.

    It is also empty if the server no longer knows the earlier run.

    Raises:
        RPCError: The server did not answer.
    """
    reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    before = ""
    async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
        failed = event.workflow_task_failed_event_attributes
        before = failed.base_run_id if failed.cause == reset else before
    if not before:
        return ""
    ended = client.get_workflow_handle(workflow_id, run_id=before)
    try:
        async for event in ended.fetch_history_events(
            event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
        ):
            return event.workflow_execution_failed_event_attributes.failure.application_failure_info.type
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return ""
