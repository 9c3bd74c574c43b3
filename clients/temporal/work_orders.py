"""The client that starts, reads and lists work orders on the Temporal server."""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import ClassVar, Final
from urllib.parse import unquote

from temporalio.client import WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.index import page_of, quote_name
from clients.executions.messages import WORK_ORDER, Subject, server_refusal
from clients.executions.presence import why_nothing_opens
from clients.executions.task_rows import task_at_close, task_of_row, watch_of, with_watch
from clients.executions.typed_client import Executions
from clients.executions.waits import waiting_for, waits_for_opening
from septet.board import circle_of
from septet.contracts.names import LOCAL_PULL, ORDER_ID, Stage, Status, watch_id, watched_order
from septet.contracts.order import WorkOrderInput
from septet.contracts.replies import TaskReply, TasksReply
from septet.contracts.repository import without_credentials
from septet.contracts.task import Move, Task, TaskError
from septet.contracts.task_rows import MEMO, first_task, row_of, waits_in
from septet.errors import AlreadyRunningError, CircleError, InvalidInputError, NotFoundError, SealedError
from septet.git.engine.address import with_project
from septet.system.text import timestamp
from workflows.wire.search_attributes import start_attributes

_OPEN: Final = (Status.PENDING, Status.RUNNING, Status.WAITING)
_AND_IS: Final[Mapping[Status, str]] = {
    **{status: f' AND ExecutionStatus="Running" AND SeptetStatus="{status}"' for status in _OPEN},
    Status.COMPLETED: ' AND ExecutionStatus="Completed"',
    Status.FAILED: ' AND ExecutionStatus IN ("Failed", "TimedOut")',
    Status.CANCELLED: ' AND ExecutionStatus IN ("Canceled", "Terminated")',
}
"""The condition for each status. A closed work order is found by Temporal's status, even if it was terminated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """The filters of a list of work orders."""

    status: Status | None = None
    is_open: bool = False
    agent: str = ""
    repository: str = ""
    """The address, the path or the project of the repository whose work orders are listed; empty for all."""
    within: timedelta | None = None

    @property
    def query(self) -> str:
        """The filters as a query for Temporal.

        Raises:
            InvalidInputError: A name has a character that a query cannot contain.
        """
        query = f'WorkflowType="WorkOrder"{_AND_IS[self.status] if self.status else ""}'
        if self.is_open:
            query += ' AND ExecutionStatus="Running"'
        if self.agent:
            query += f" AND SeptetAgent={quote_name(self.agent)}"
        if self.repository:
            name = quote_name(self.repository)
            query += f" AND (SeptetRepository={name} OR SeptetProject={name})"
        if self.within is not None:
            query += f' AND StartTime>"{(datetime.now(UTC) - self.within).isoformat()}"'
        return query


EVERY_ORDER: Final = OrderFilter()


@dataclass(frozen=True, slots=True)
class WorkOrders(Executions[Task]):
    """Starts, reads and lists the work orders of one Temporal namespace."""

    subject: ClassVar[Subject] = WORK_ORDER
    workflow: ClassVar[str] = "WorkOrder"
    query: ClassVar[str] = "work_order"
    view: ClassVar[type[Task]] = Task

    async def describe(self, workflow_id: str) -> WorkflowExecutionDescription:
        """Return the server's description of a work order, or of its watch if the server deleted the work order.

        A pull request may be open for longer than the server retains a closed work order.
        """
        try:
            return await Executions.describe(self, workflow_id)
        except NotFoundError:
            watch = await watch_of(self.client, workflow_id)
            if watch is None:
                raise
            return watch

    async def run(self, order: WorkOrderInput, order_id: str | None = None, *, key: str = "") -> TaskReply:
        """Start a work order; if its input requests this, the work order first waits on the board.

        With a key the start is idempotent: the same key and input return the same work order. Without `order_id`
        the id is derived from the key, so that the server itself refuses a second start.

        Raises:
            AlreadyRunningError: The id was used before, or the key was used with another input.
            InvalidInputError: The id is invalid.
        """
        order = _without_credentials(with_project(order))
        if key and order_id is None:
            order_id = id_of_key(key)
        try:
            return TaskReply(task=await self.start(order, order_id))
        except AlreadyRunningError:
            if not key or order_id is None or await self.input_of(WorkOrderInput, order_id) != order:
                raise
            return TaskReply(task=await self.get(order_id))

    async def was_reset_since(self, order_id: str, when: datetime) -> bool:
        """Return whether a work order was reset after `when`, a time by the server's clock.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        description = await self.describe(order_id)
        first = description.raw_description.workflow_execution_info.first_run_id
        return description.run_id != first and description.start_time > when

    async def start(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order, and return its task, made from the input if this client cannot decrypt the task.

        Raises:
            AlreadyRunningError: The id was used before.
            InvalidInputError: The id is invalid.
        """
        task = await self.put(order, order_id)
        with suppress(SealedError):
            return await self.get(task.id)
        return task

    async def put(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order, and return a task made from the input, without waiting for a worker.

        Raises:
            AlreadyRunningError: The id was used before.
            CircleError: The work order would wait for itself, directly or through other work orders.
            InvalidInputError: The id is invalid, or the input requests work that is not possible yet.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        order_id = order_id if order_id is not None else f"wo-{secrets.token_hex(4)}"
        if not ORDER_ID.fullmatch(order_id):
            remedy = "Use up to 64 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{order_id!r} is not a work order id.", remedy=remedy)
        order = _without_credentials(order)
        await self._refuse_circle(order_id, order.after)
        row = row_of(first_task(order_id, order, waits_in(order), timestamp(datetime.now(UTC))))
        issue = order.tracker.key if order.tracker is not None else f"#{order.issue}"
        summary = f"{order.repository} {order.title or issue}"
        await self.start_workflow(order_id, order, summary, {MEMO: row}, start_attributes(row))
        return row

    async def list(self, which: OrderFilter = EVERY_ORDER, *, limit: int = 100, after: str = "") -> TasksReply:
        """Return a page of work orders from the server's list, open ones first, each once.

        Raises:
            InvalidInputError: A name of the filter has a character that a query cannot contain.
            NotFoundError: `after` is not the `next` of a page.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        rows, following = await page_of(self.client, which.query, after=after, limit=limit)
        return TasksReply(tasks=tuple([await task_of_row(row) for row in rows]), next=following)

    async def wait_for_end(self, order_id: str) -> Task:
        """Wait until a work order is closed, across resets, and return the work order."""
        while not (task := await self.wait(order_id)).is_closed:
            pass
        return task

    async def without_worker(self, row: WorkflowExecution) -> Task:
        """Return an open work order from the server's records, without waiting for a worker."""
        from clients.executions.steps_in_history import with_steps

        task = await task_of_row(row)
        try:
            return await with_steps(self.client, task, row)
        except (RPCError, SealedError):
            return task

    async def running_step(self, order_id: str) -> str:
        """Return a work order's running step; empty if no step runs, or no worker answers."""
        return await self.answer_of(order_id, "running_step", str) or ""

    async def history(self, order_id: str) -> tuple[Move, ...]:
        """Return a work order's moves from stage to stage, oldest first; empty if no worker answers."""
        moves = await self._moves_of(order_id)
        if moves and moves[-1].to == Stage.REVIEW and await watch_of(self.client, order_id) is not None:
            return (*moves, *await self._moves_of(watch_id(order_id)))
        return moves

    async def waiting_for(self, order_id: str, *, tells_next_try: bool = False) -> str | None:
        """Return why a work order waits, or else `None`; `tells_next_try` adds the time of the next attempt.

        Raises:
            NotFoundError: The work order does not exist.
        """
        return await self.waits_of(await self.describe(order_id), tells_next_try=tells_next_try)

    async def waits_of(
        self, description: WorkflowExecutionDescription, *, tells_next_try: bool = False
    ) -> str | None:
        """Return the same as `waiting_for`, given the server's description of a work order or watch."""
        if description.status is WorkflowExecutionStatus.COMPLETED:
            watch = await watch_of(self.client, watched_order(description.id))
            return await waiting_for(watch, tells_next_try=tells_next_try) if watch is not None else None
        if description.status is not WorkflowExecutionStatus.RUNNING:
            return None
        opens = waits_for_opening(description)
        if opens and (why := await why_nothing_opens(self.client, description.task_queue)):
            return why
        return await waiting_for(description, tells_next_try=tells_next_try)

    async def at_end(self, view: Task) -> Task:
        """Return a completed work order with the current state of its pull request."""
        return await with_watch(self.client, view) if view.stage is Stage.REVIEW else view

    async def without_result(self, row: WorkflowExecution, *, has_failed: bool) -> Task:
        """Return a work order from `row` if it is stuck or has failed or no worker answers, else from a worker."""
        if (cause := await self.stuck_cause(row)) is not None:
            return (await task_of_row(row)).model_copy(update={"stuck": cause})
        task = None if has_failed else await self.answer_of(row.id, self.query, Task)
        return task if task is not None else await task_of_row(row)

    def at_close(self, view: Task, row: WorkflowExecution, error: TaskError | None) -> Task:
        """Return a work order with its final status and error."""
        return task_at_close(view, row, error)

    def remedy_for_closed(self, view: Task) -> str:
        """Return the remedy for an attempt to cancel a closed work order."""
        if view.status is Status.FAILED:
            return f"To give it up, run `septet move {view.id} cancelled`."
        if view.stage is Stage.REVIEW:
            follows = "Its agent follows the pull request. " if view.rework is not None else ""
            close = "close it there"
            if (pull := LOCAL_PULL.fullmatch(view.pr_url or "")) is not None:
                path = shlex.quote(unquote(pull["path"]))
                close = f"run `septet pr close {pull['number']} --repo {path}`"
            kept = f"`septet move {view.id} done` ends its review, and the pull request stays as it is."
            return f"{follows}To give up its pull request, {close}. {kept}"
        return "Nothing of it is running."

    async def _moves_of(self, workflow_id: str) -> tuple[Move, ...]:
        return await self.answer_of(workflow_id, "history", tuple[Move, ...]) or ()

    async def _refuse_circle(self, order_id: str, after: Sequence[str]) -> None:
        """Refuse a new work order that would wait for itself through existing work orders."""

        async def comes_after(other: str) -> Sequence[str]:
            try:
                row = await self.handle(other).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return ()
                raise server_refusal(error) from error
            waits = row.status is WorkflowExecutionStatus.RUNNING and row.workflow_type == self.workflow
            return (await task_of_row(row)).after if waits else ()

        circle = await circle_of(order_id, after, comes_after)
        if circle is not None:
            raise CircleError(f"after: they would wait for each other forever: {circle}.")


def _without_credentials(order: WorkOrderInput) -> WorkOrderInput:
    """Return a work order's input without the credentials in its repository's address."""
    return order.model_copy(update={"repository": without_credentials(order.repository)})


def id_of_key(key: str) -> str:
    """Return the id that a work order gets if the caller gives only an idempotency key."""
    return f"wo-{sha256(key.encode()).hexdigest()[:16]}"
