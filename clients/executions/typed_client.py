"""The base class of the clients that start, read, await and cancel the workflows of one type."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from pydantic import ValidationError
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.host.payloads import read_json
from clients.executions.messages import Subject, WorkflowCalls
from clients.executions.waits import stuck_cause
from septet.contracts.task import Task, TaskError
from septet.contracts.wire import Wire
from septet.errors import AlreadyRunningError, NotFoundError, RefusedTransitionError, ServerNotReachedError

if TYPE_CHECKING:
    from septet.pipelines.views import PipelineView

View = TypeVar("View", "Task", "PipelineView")
Answer = TypeVar("Answer")
Input = TypeVar("Input", bound=Wire)
_SHOWN_BY: Final = {"Pipeline": "Use `septet pipeline show {0}`.", "WorkOrder": "Use `septet show {0}`."}
"""The remedy if a workflow has another type than expected, by the workflow's type."""
CLOSED_AS: Final[Mapping[WorkflowExecutionStatus | None, str]] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.TIMED_OUT: "failed",
    WorkflowExecutionStatus.CANCELED: "cancelled",
    WorkflowExecutionStatus.TERMINATED: "cancelled",
}
"""Septet's status of a closed workflow, by Temporal's status."""


@dataclass(frozen=True, slots=True)
class Executions(Generic[View]):
    """Starts, reads and cancels the workflows of one type; each workflow is read as one object, such as a `Task`.

    Types and queries are strings here, because an import of the workflows' modules takes a second.
    """

    client: Client
    task_queue: str = "septet"
    subject: ClassVar[Subject]
    workflow: ClassVar[str]
    query: ClassVar[str]
    view: ClassVar[type[Any]]

    async def get(self, workflow_id: str) -> View:
        """Return a workflow's state, such as a task: by a query, from its result, or from the server's records.

        Raises:
            NotFoundError: The workflow does not exist.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        return await self.get_of_row(await self.describe(workflow_id))

    async def wait(self, workflow_id: str) -> View:
        """Wait until a workflow is closed or deleted, and return its state."""
        try:
            await self.handle(workflow_id).result()
        except WorkflowFailureError:
            pass
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise self.subject.refusal(error, workflow_id) from error
        return await self.get(workflow_id)

    async def cancel_and_wait(self, workflow_id: str, reason: str = "") -> View:
        """Request a workflow's cancel, wait at most 20 s for its end, and return its state."""
        await self.ask_to_cancel(workflow_id, reason)
        return await self.wait_briefly(workflow_id)

    async def ask_to_cancel(self, workflow_id: str, reason: str = "") -> None:
        """Request the cancel of a workflow; a worker carries out the cancel later.

        Raises:
            NotFoundError: The workflow does not exist.
            RefusedTransitionError: The workflow is closed already.
        """
        description = await self.describe(workflow_id)
        if description.status is not WorkflowExecutionStatus.RUNNING:
            raise self.refusal_of_cancel(await self.get(workflow_id))
        try:
            await self.handle(workflow_id).cancel(reason=reason)
        except RPCError as error:
            raise self.subject.refusal_of_open(error, workflow_id) from error

    def refusal_of_cancel(self, view: View) -> RefusedTransitionError:
        """Return the error for an attempt to cancel a closed workflow."""
        message = f"{view.id} is {view.status.value} and cannot be cancelled."
        return RefusedTransitionError(message, remedy=self.remedy_for_closed(view))

    async def wait_briefly(self, workflow_id: str) -> View:
        """Wait at most 20 s until a workflow is closed, and return the workflow's current state."""
        try:
            async with asyncio.timeout(20.0):
                return await self.wait(workflow_id)
        except TimeoutError:
            return await self.get(workflow_id)

    async def describe(self, workflow_id: str) -> WorkflowExecutionDescription:
        """Return the server's description of a workflow.

        Raises:
            NotFoundError: No workflow has this id and this type.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        with self.subject.refusals(workflow_id):
            description = await self.handle(workflow_id).describe()
        if (kind := description.workflow_type) != self.workflow:
            message = f"{workflow_id} is a workflow of type {kind}, not {self.workflow}."
            raise NotFoundError(message, remedy=_SHOWN_BY.get(kind, "").format(workflow_id))
        return description

    async def exists(self, workflow_id: str) -> bool:
        """Return whether a workflow of this id exists.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses.
        """
        try:
            await self.describe(workflow_id)
        except NotFoundError:
            return False
        return True

    async def answer_of(self, workflow_id: str, query: str, kind: type[Answer]) -> Answer | None:
        """Return a workflow's answer to a query; `None` if no worker answers."""
        try:
            return await self.calls(workflow_id).query(query, kind)
        except (NotFoundError, ServerNotReachedError):
            return None

    async def stuck_cause(self, row: WorkflowExecution) -> str | None:
        """Return the reason why an open workflow is stuck and cannot answer a query; `None` if it is not stuck.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses.
        """
        with self.subject.refusals(row.id):
            return await stuck_cause(self.client, row)

    async def get_of_row(self, row: WorkflowExecution) -> View:
        """Return the state of a workflow, given the server's description of the workflow.

        Raises:
            ServerNotReachedError: The server does not answer, or refuses.
        """
        error: TaskError | None = None
        if row.status in {WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED}:
            try:
                return await self.at_end(await self.handle(row.id, row.run_id).result(follow_runs=False))
            except WorkflowFailureError as failure:
                if isinstance(failure.cause, ApplicationError) and failure.cause.details:
                    return await self.at_end(self.view.model_validate(failure.cause.details[0], strict=False))
                error = error_of(failure.cause)
            except RPCError as refusal:
                raise self.subject.refusal(refusal, row.id) from refusal
        return self.at_close(await self.without_result(row, has_failed=error is not None), row, error)

    async def at_end(self, view: View) -> View:
        """Return a closed workflow's state, updated with facts that changed after the workflow ended."""
        return view

    @abstractmethod
    async def without_result(self, row: WorkflowExecution, *, has_failed: bool) -> View:
        """Return the state of a workflow that is open, or ended without a result."""

    @abstractmethod
    def at_close(self, view: View, row: WorkflowExecution, error: TaskError | None) -> View:
        """Return `view` with the final status and error, which a terminated workflow does not record itself."""

    @abstractmethod
    def remedy_for_closed(self, view: View) -> str:
        """Return the remedy for an attempt to cancel a closed workflow."""

    async def start_workflow(
        self,
        workflow_id: str,
        order: Wire,
        summary: str,
        memo: Mapping[str, Wire] | None = None,
        search_attributes: TypedSearchAttributes | None = None,
    ) -> None:
        """Start a workflow under an id that was never used.

        Raises:
            AlreadyRunningError: The id was used before.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        try:
            await self.client.start_workflow(
                self.workflow,
                order,
                id=workflow_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=summary[:200],
                memo=memo,
                search_attributes=search_attributes,
            )
        except WorkflowAlreadyStartedError as error:
            other = "start another one with another `--id`, or for a tracker's issue with `--again`"
            remedy = f"Look at it with `{self.subject.show} {workflow_id}`; or {other}."
            raise AlreadyRunningError(f"The id {workflow_id} was used before.", remedy=remedy) from error
        except RPCError as error:
            raise self.subject.refusal(error, workflow_id) from error

    async def input_of(self, kind: type[Input], workflow_id: str, run_id: str | None = None) -> Input | None:
        """Return the input of a workflow's run, by default the latest; `None` if the input does not fit `kind`.

        Raises:
            NotFoundError: The run does not exist.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        try:
            async for event in self.handle(workflow_id, run_id).fetch_history_events(page_size=1):
                payloads = event.workflow_execution_started_event_attributes.input.payloads
                content = await read_json(self.client.data_converter, payloads[0]) if payloads else b"null"
                return kind.model_validate_json(content, extra="ignore")
        except ValidationError:
            return None
        except RPCError as error:
            raise self.subject.refusal(error, workflow_id) from error
        return None

    def handle(self, workflow_id: str, run_id: str | None = None) -> WorkflowHandle[Any, View]:
        """Return the SDK's handle of a workflow, or of one of its runs."""
        return self.client.get_workflow_handle(workflow_id, run_id=run_id, result_type=self.view)

    def calls(self, workflow_id: str) -> WorkflowCalls:
        """Return the client that sends queries and updates to a workflow."""
        return WorkflowCalls(self.handle(workflow_id), self.subject)


def error_of(cause: BaseException) -> TaskError:
    """Return the error of a workflow that failed without a result."""
    if isinstance(cause, ApplicationError):
        return TaskError(type=cause.type or "Failed", message=cause.message)
    return TaskError(type=type(cause).__name__, message=str(cause))
