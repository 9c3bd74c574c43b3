"""The typed client: every face asks for work orders here, and gets the same objects."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from clients._closed import task_of_closed, task_of_row
from clients._pending import waiting_for
from septet.contracts.names import ORDER_ID, Status, Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.task import Move, Task
from septet.errors import (
    AlreadyRunningError,
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    ServerNotReachedError,
)

_NOT_REAPPLIED: Final = (
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
    ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST,
)
"""What was decided about the work that a reset takes back does not count for the work that follows."""
_QUERY_TIMEOUT: Final = timedelta(seconds=5)
_CANCEL_WITHIN_SECONDS: Final = 20.0

Handle = WorkflowHandle[Any, Task]
"""Type and queries are asked for by name: what a worker runs takes a second to import."""


@dataclass(frozen=True, slots=True)
class WorkOrders:
    """Work orders on one Temporal namespace."""

    client: Client
    task_queue: str = "septet"

    async def start(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order and return it.

        Raises:
            AlreadyRunningError: The id was used before.
            InvalidInputError: It is no id.
        """
        order_id = order_id if order_id is not None else f"wo-{secrets.token_hex(4)}"
        if not ORDER_ID.fullmatch(order_id):
            remedy = "Use up to 64 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{order_id!r} is no id of a work order.", remedy=remedy)
        try:
            handle = await self.client.start_workflow(
                "WorkOrder",
                order,
                id=order_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=f"{order.repository} {order.title or f'#{order.issue}'}"[:200],
            )
        except WorkflowAlreadyStartedError as error:
            message = f"The id {order_id} was used before."
            raise AlreadyRunningError(message, remedy=f"Look at it with `septet show {order_id}`.") from error
        return await self.task(handle.id)

    async def task(self, order_id: str) -> Task:
        """Return the work order object.

        Raises:
            NotFoundError: There is no such work order.
        """
        description = await self._describe(order_id)
        if description.status in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED):
            return await self._told_at_its_end(order_id, description)
        try:
            task: Task = await self._handle(order_id).query(
                "work_order", result_type=Task, rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return task_of_row(description)
        return task_of_closed(task, description)

    async def running_step(self, order_id: str) -> str:
        """Return the step that is under way, or an empty string."""
        try:
            step: str = await self._handle(order_id).query(
                "running_step", result_type=str, rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return ""
        return step

    async def history(self, order_id: str) -> tuple[Move, ...]:
        """Return the stages that a work order went through; none where no worker can be asked."""
        try:
            moves: tuple[Move, ...] = await self._handle(order_id).query(
                "history", result_type=tuple[Move, ...], rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return ()
        return moves

    async def waiting_for(self, order_id: str) -> str | None:
        """Return what holds a work order up right now: a full disk, a pause, a host without a slot; else `None`.

        Raises:
            NotFoundError: There is no such work order.
        """
        return waiting_for(await self._describe(order_id))

    async def tasks(self, limit: int = 100) -> AsyncIterator[Task]:
        """Return the newest work orders, as far as search attributes tell."""
        rows = self.client.list_workflows('WorkflowType="WorkOrder"', limit=limit)
        async for row in rows:
            yield task_of_row(row)

    async def wait(self, order_id: str) -> Task:
        """Wait until the work order is closed and return it."""
        try:
            await self._handle(order_id).result()
        except WorkflowFailureError:
            pass
        except RPCError as error:
            raise _told(error, order_id) from error
        return await self.task(order_id)

    async def cancel(self, order_id: str) -> Task:
        """End its agent, keep its work in a rescue, and return the closed work order.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It is closed already.
        """
        description = await self._describe(order_id)
        if description.status is not WorkflowExecutionStatus.RUNNING:
            task = await self.task(order_id)
            raise RefusedTransitionError(
                f"{order_id} is {task.status.value} and cannot be cancelled.",
                remedy="Only running work orders can be cancelled.",
            )
        await self._handle(order_id).cancel()
        try:
            async with asyncio.timeout(_CANCEL_WITHIN_SECONDS):
                return await self.wait(order_id)
        except TimeoutError:
            return await self.task(order_id)

    async def retry(self, order_id: str, from_step: Step | None = None, reason: str = "septet retry") -> Task:
        """Go on with a closed work order at a step: by default at the one that failed. Its id stays.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It runs, or it never came to that step.
        """
        description = await self._describe(order_id)
        if description.status is WorkflowExecutionStatus.RUNNING:
            message = f"{order_id} is running."
            raise RefusedTransitionError(message, remedy="Cancel it first, or wait for its end.")
        task = await self.task(order_id)
        if task.status is Status.COMPLETED and from_step is None:
            message = f"{order_id} is completed."
            raise RefusedTransitionError(message, remedy="Name the step to go back to with --from.")
        event_id = await self._reset_point(order_id, description.run_id, task, from_step)
        await self._reset(order_id, description.run_id, event_id, reason)
        return await self.task(order_id)

    async def _reset_point(self, order_id: str, run_id: str | None, task: Task, from_step: Step | None) -> int:
        """Return the workflow task that scheduled the step, or the first one when no step was reached."""
        wanted = from_step.value if from_step else _step_to_retry(task)
        first = 0
        async for event in self._handle(order_id, run_id).fetch_history_events():
            if not first and event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                first = event.event_id
            scheduled = event.activity_task_scheduled_event_attributes
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED and (
                scheduled.activity_type.name == wanted
            ):
                return scheduled.workflow_task_completed_event_id
        if from_step is not None or not first:
            message = f"{order_id} never came to {wanted}."
            raise RefusedTransitionError(message, remedy=f"See its steps with `septet steps {order_id}`.")
        return first

    async def _reset(self, order_id: str, run_id: str | None, event_id: int, reason: str) -> None:
        request = ResetWorkflowExecutionRequest(
            namespace=self.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=order_id, run_id=run_id or ""),
            reason=reason,
            workflow_task_finish_event_id=event_id,
            request_id=secrets.token_hex(8),
            reset_reapply_exclude_types=_NOT_REAPPLIED,
        )
        await self.client.workflow_service.reset_workflow_execution(request)

    async def _told_at_its_end(self, order_id: str, description: WorkflowExecutionDescription) -> Task:
        try:
            return await self._handle(order_id, description.run_id).result(follow_runs=False)
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return Task.model_validate(cause.details[0], strict=False)
            return task_of_closed(task_of_row(description), description, cause)

    async def _describe(self, order_id: str) -> WorkflowExecutionDescription:
        try:
            description = await self._handle(order_id).describe()
        except RPCError as error:
            raise _told(error, order_id) from error
        if description.workflow_type != "WorkOrder":
            raise NotFoundError(f"{order_id} is a workflow, but no work order: {description.workflow_type}.")
        return description

    def _handle(self, order_id: str, run_id: str | None = None) -> Handle:
        return self.client.get_workflow_handle(order_id, run_id=run_id, result_type=Task)


def _step_to_retry(task: Task) -> str:
    unfinished = [row.step for row in task.steps if not row.success]
    if unfinished:
        return unfinished[-1]
    done = {row.step for row in task.steps}
    return next((step.value for step in Step if step.value not in done), Step.CREATE_PULL_REQUEST.value)


def _told(error: RPCError, order_id: str) -> Exception:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFoundError(f"There is no work order {order_id}.", remedy="See them all with `septet board`.")
    return ServerNotReachedError(f"The Temporal server refused: {error.message}.")
