"""Read work orders from the server's lists of workflows, without a worker."""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from activities.host.payloads import memo_json
from clients.executions.typed_client import CLOSED_AS
from clients.executions.waits import stuck_cause_of_row
from septet.contracts.names import Stage, Status, watch_id, watched_order
from septet.contracts.seal import key_id_of
from septet.contracts.task import Task, TaskError
from septet.contracts.task_rows import MEMO
from septet.errors import SealedError
from septet.system.text import timestamp
from workflows.wire import search_attributes as by

_STAGES: Final[Mapping[Status, Stage]] = {
    Status.COMPLETED: Stage.REVIEW,
    Status.FAILED: Stage.BLOCKED,
    Status.CANCELLED: Stage.DONE,
}
"""The stage of a closed work order, by its status."""
_HAS_THE_ROW: Final = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED)


async def task_of_row(row: WorkflowExecution) -> Task:
    """Return the work order of a listed workflow, which is the work order's own workflow or its watch."""
    task, title = None, ""
    try:
        task = Task.model_validate_json(await memo_json(row, MEMO) or b"null")
    except SealedError:
        title = f"(sealed with key {key_id_of(row.raw_info.memo.fields[MEMO].metadata)})"
    except ValidationError:  # an older version wrote no task
        pass
    if task is not None:
        task = _with_columns(task, row).model_copy(update={"stuck": stuck_cause_of_row(row)})
        return task_at_close(task, row) if row.workflow_type == "WorkOrder" else task
    columns = row.typed_search_attributes
    status = _status_at_close(row)
    return Task(
        id=watched_order(row.id),
        title=title,
        project=columns.get(by.PROJECT, ""),
        status=status or Status(columns.get(by.STATUS, Status.RUNNING.value)),
        stage=_STAGES[status] if status else Stage(columns.get(by.STAGE, Stage.EXECUTING.value)),
        priority=columns.get(by.PRIORITY, 3),
        assigned_agent=columns.get(by.AGENT) or None,
        repository_url=columns.get(by.REPOSITORY, ""),
        issue_number=columns.get(by.ISSUE, ""),
        external_id=columns.get(by.ISSUE, ""),
        pr_url=columns.get(by.PULL_REQUEST) or None,
        stuck=stuck_cause_of_row(row),
        created_at=timestamp(row.start_time),
        updated_at=timestamp(row.close_time or row.start_time),
    )


async def watch_of(client: Client, order_id: str) -> WorkflowExecutionDescription | None:
    """Return the description of a work order's watch; `None` unless the watch runs or is completed."""
    try:
        description = await client.get_workflow_handle(watch_id(order_id)).describe()
    except RPCError:
        return None
    return description if description.status in _HAS_THE_ROW else None


async def with_watch(client: Client, task: Task) -> Task:
    """Return a completed work order with its watch's present stage, error, rework, budget and findings."""
    watch = await watch_of(client, task.id)
    if watch is None:
        return task
    row = await task_of_row(watch)
    if row.stage is Stage.REVIEW and row.rework is None:
        return task
    update: dict[str, object] = {
        "stage": row.stage,
        "error": row.error,
        "updated_at": row.updated_at,
        "rework": row.rework,
        "budget": row.budget,
        "findings": row.findings,
    }
    if row.rework is not None and row.rework.round:
        update |= {"commit_sha": row.commit_sha, "usage": row.usage}
        update["rescues"] = (*task.rescues, *(each for each in row.rescues if each not in task.rescues))
    return task.model_copy(update=update)


def task_at_close(task: Task, row: WorkflowExecution, error: TaskError | None = None) -> Task:
    """Return a work order with its final status and error, which a terminated workflow does not record itself."""
    status = _status_at_close(row)
    if status is None:
        return task
    if row.status is WorkflowExecutionStatus.TERMINATED:  # the workflow itself recorded nothing
        remedy = f"Continue it: septet retry {row.id}"
        error = TaskError(type="Terminated", message="It was terminated in Temporal.", remedy=remedy)
    closed = task.model_copy(update={"status": status, "error": error or task.error})
    return closed if closed.has_plan_alone else closed.model_copy(update={"stage": _STAGES[status]})


def _with_columns(task: Task, row: WorkflowExecution) -> Task:
    """Return a task from a memo, updated from the search attributes, which are written more often.

    In an older memo, findings remain after the decision, so only a waiting work order shows findings.
    """
    columns = row.typed_search_attributes
    if (stage := columns.get(by.STAGE)) is None:
        return task
    status = Status(columns.get(by.STATUS, task.status.value))
    values = {
        "project": columns.get(by.PROJECT, task.project),
        "status": status,
        "findings": task.findings if status is Status.WAITING or row.workflow_type == "PullRequest" else (),
        "stage": Stage(stage),
        "assigned_agent": columns.get(by.AGENT) or task.assigned_agent,
        "pr_url": columns.get(by.PULL_REQUEST) or task.pr_url,
        "updated_at": timestamp(row.close_time) if row.close_time else task.updated_at,
    }
    return task.model_copy(update=values)


def _status_at_close(row: WorkflowExecution) -> Status | None:
    word = CLOSED_AS.get(row.status)
    return Status(word) if word is not None else None
