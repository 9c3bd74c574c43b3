"""What the board asks of the server: who has ended without a word, and who waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from pydantic import ValidationError
from temporalio import activity
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from septet.contracts.board import Found, Known, Waits
from septet.contracts.task import Task

_AT_A_TIME: Final = 20
_WAITING: Final = 'WorkflowType="WorkOrder" AND SeptetStage="triaged" AND ExecutionStatus="Running"'
_DEFAULT_SCORE: Final = 3


class BoardActivities:
    """Questions to the server that a workflow cannot ask."""

    @activity.defn(name="find_closed")
    async def find_closed(self, known: Known) -> list[str]:
        """Return those of some work orders that are closed or gone. Leaves nothing."""
        places = asyncio.Semaphore(_AT_A_TIME)

        async def closed(order_id: str) -> bool:
            async with places:
                return await _is_closed(order_id)

        ended = await asyncio.gather(*map(closed, known.ids))
        return [order_id for order_id, is_so in zip(known.ids, ended, strict=True) if is_so]

    @activity.defn(name="find_waiting")
    async def find_waiting(self, known: Known) -> Found:
        """Return the triaged work orders of this queue that are not known, up to a limit. Leaves nothing."""
        found: list[Waits] = []
        known_ids = frozenset(known.ids)
        async for row in _triaged():
            if row.id in known_ids:
                continue
            if len(found) == known.limit:
                return Found(waiting=tuple(found), all=False)
            found.append(await _waits(row))
        return Found(waiting=tuple(found))


async def _is_closed(order_id: str) -> bool:
    try:
        description = await activity.client().get_workflow_handle(order_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return True
        raise
    return description.status not in (None, WorkflowExecutionStatus.RUNNING)


def _triaged() -> AsyncIterator[WorkflowExecution]:
    query = f'{_WAITING} AND TaskQueue="{activity.info().task_queue}"'
    return activity.client().list_workflows(query, page_size=1000)


async def _waits(row: WorkflowExecution) -> Waits:
    project, score = "", _DEFAULT_SCORE
    try:
        task = Task.model_validate(await row.memo_value("task", {}), strict=False)
        project, score = task.project, task.score
    except ValidationError:
        pass  # an older version's, or none: the board's default will do
    return Waits(id=row.id, project=project, score=score, since=row.start_time.timestamp())
