"""Read the requests of a pipeline's work orders to people, which the pipeline itself does not know."""

import asyncio
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from clients.temporal.task_rows import task_of_row
from septet.contracts.pipeline_view import IssueStatus, PipelineView
from septet.contracts.task import Task

_AT_WORK: Final = (IssueStatus.PLANNING, IssueStatus.EXECUTING)


async def with_needs(client: Client, view: PipelineView) -> PipelineView:
    """Return a pipeline with its work orders' requests to people, each once, read without a worker."""
    orders = [issue.order_id for issue in view.issues if issue.status in _AT_WORK]
    needs = await asyncio.gather(*(_need_of(client, order_id) for order_id in orders))
    return view.model_copy(update={"needs": tuple(dict.fromkeys(filter(None, needs)))})


async def _need_of(client: Client, order_id: str) -> str:
    try:
        task = await task_of_row(await client.get_workflow_handle(order_id).describe())
    except RPCError:  # it has not started yet
        return ""
    return "" if task.is_closed else _question_of(task)


def _question_of(task: Task) -> str:
    if task.waits_for_a_decision:
        return f"{task.id} is waiting for your approval: septet approve {task.id}"
    needs_nobody = task.budget is not None and not task.budget.is_spent
    return "" if needs_nobody else task.question
