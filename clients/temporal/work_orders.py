"""The typed client of work orders: every face starts them and looks at them here, and gets the same objects."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import ClassVar, Final

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from clients.temporal.executions import Executions
from clients.temporal.index import page_of
from clients.temporal.pull_request_watch import watch_of, with_watch
from clients.temporal.refusals import WORK_ORDER, Subject, server_refusal
from clients.temporal.task_rows import task_at_close, task_of_row
from clients.temporal.waits import waiting_for
from septet.board.circle import circle_of
from septet.contracts.names import ORDER_ID, Stage, Status
from septet.contracts.order import FOLLOW_PR_REFUSAL, WorkOrderInput
from septet.contracts.pull_request import watch_id
from septet.contracts.replies import TaskReply, TasksReply
from septet.contracts.row import MEMO, first_task, row_of, waits_in
from septet.contracts.task import Move, Task, TaskError
from septet.errors import AlreadyRunningError, CircleError, InvalidInputError
from septet.git.address import without_credentials
from septet.git.project import with_project
from septet.system.timestamps import timestamp
from workflows.search_attributes import start_attributes

_OPEN: Final = (Status.PENDING, Status.RUNNING, Status.WAITING)
_AND_IS: Final[Mapping[Status, str]] = {
    **{status: f' AND ExecutionStatus="Running" AND SeptetStatus="{status}"' for status in _OPEN},
    Status.COMPLETED: ' AND ExecutionStatus="Completed"',
    Status.FAILED: ' AND ExecutionStatus IN ("Failed", "TimedOut")',
    Status.CANCELLED: ' AND ExecutionStatus IN ("Canceled", "Terminated")',
}
"""What the server itself knows of a work order's end is true also of one that was terminated."""


@dataclass(frozen=True, slots=True)
class WorkOrders(Executions[Task]):
    """Work orders on one Temporal namespace."""

    subject: ClassVar[Subject] = WORK_ORDER
    workflow: ClassVar[str] = "WorkOrder"
    query: ClassVar[str] = "work_order"
    view: ClassVar[type[Task]] = Task

    async def run(self, order: WorkOrderInput, order_id: str | None = None, *, key: str = "") -> TaskReply:
        """Start a work order; its input says whether it waits on the board first.

        With a key it is started once: the same key and input give the same work order again. The key gives the id
        where none is named, so that the server itself refuses a second start.

        Raises:
            AlreadyRunningError: The id was used before, or the key with another input.
            InvalidInputError: It is no id.
        """
        order = with_project(order)
        if key and order_id is None:
            order_id = f"wo-{sha256(key.encode()).hexdigest()[:16]}"
        try:
            return TaskReply(task=await self.start(order, order_id))
        except AlreadyRunningError:
            if not key or order_id is None or await self.input_of(WorkOrderInput, order_id) != order:
                raise
            return TaskReply(task=await self.get(order_id))

    async def start(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order and return it.

        Raises:
            AlreadyRunningError: The id was used before.
            InvalidInputError: It is no id.
        """
        return await self.get((await self.put(order, order_id)).id)

    async def put(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order and return it as it was asked for: no worker is waited for.

        Raises:
            AlreadyRunningError: The id was used before.
            CircleError: It and others would wait for each other, or it for itself.
            InvalidInputError: It is no id, or what the input asks for cannot be done yet.
            ServerNotReachedError: The server refused.
        """
        order_id = order_id if order_id is not None else f"wo-{secrets.token_hex(4)}"
        if not ORDER_ID.fullmatch(order_id):
            remedy = "Use up to 64 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{order_id!r} is no id of a work order.", remedy=remedy)
        if order.follow_pr:
            remedy = f"When there are some, `septet move {order_id} executing --feedback TEXT` has them worked on."
            raise InvalidInputError(f"{FOLLOW_PR_REFUSAL}.", remedy=remedy)
        order = order.model_copy(update={"repository": without_credentials(order.repository)})
        await self._refuse_circle(order_id, order.after)
        row = row_of(first_task(order_id, order, waits_in(order), timestamp(datetime.now(UTC))))
        summary = f"{order.repository} {order.title or f'#{order.issue}'}"
        await self.start_workflow(order_id, order, summary, {MEMO: row}, start_attributes(row))
        return row

    async def list(self, status: Status | None = None, *, limit: int = 100, after: str = "") -> TasksReply:
        """Return a page of work orders as far as search attributes tell, open ones first, each once.

        Args:
            status: Of this one only.
            limit: How many at the most.
            after: The `next` of the page before.

        Raises:
            NotFoundError: No list goes on at `after`.
            ServerNotReachedError: The server refused.
        """
        query = f'WorkflowType="WorkOrder"{_AND_IS[status] if status else ""}'
        rows, following = await page_of(self.client, query, after=after, limit=limit)
        return TasksReply(tasks=tuple([await task_of_row(row) for row in rows]), next=following)

    async def wait_for_end(self, order_id: str) -> Task:
        """Wait until a work order is closed, and return it: the end of a run that was reset is none."""
        while not (task := await self.wait(order_id)).is_closed:
            pass
        return task

    async def running_step(self, order_id: str) -> str:
        """Return the step that is under way, or an empty string."""
        return await self.answer_of(order_id, "running_step", str) or ""

    async def history(self, order_id: str) -> tuple[Move, ...]:
        """Return the stages that a work order went through; none where no worker can be asked."""
        moves = await self._moves_of(order_id)
        if moves and moves[-1].to == Stage.REVIEW and await watch_of(self.client, order_id) is not None:
            return (*moves, *await self._moves_of(watch_id(order_id)))
        return moves

    async def waiting_for(self, order_id: str) -> str | None:
        """Return what holds a work order up right now: a full disk, a pause, a host without a slot; else `None`.

        Raises:
            NotFoundError: There is no such work order.
        """
        description = await self.describe(order_id)
        if description.status is WorkflowExecutionStatus.COMPLETED:
            watch = await watch_of(self.client, order_id)
            return await waiting_for(watch) if watch is not None else None
        return await waiting_for(description)

    async def stuck(self, order_id: str) -> str | None:
        """Return why a work order stands still although it is open, and what helps; else `None`.

        Raises:
            NotFoundError: There is no such work order.
        """
        return await self.stuck_cause(await self.describe(order_id))

    async def at_end(self, view: Task) -> Task:
        """Return a completed work order in the stage that its pull request has come to since."""
        return await with_watch(self.client, view) if view.stage is Stage.REVIEW else view

    async def without_result(self, row: WorkflowExecution, *, has_failed: bool) -> Task:
        """Return what a worker says of an open work order, else what its row tells."""
        if (cause := await self.stuck_cause(row)) is not None:
            return (await task_of_row(row)).model_copy(update={"stuck": cause})
        task = None if has_failed else await self.answer_of(row.id, self.query, Task)
        return task if task is not None else await task_of_row(row)

    def at_close(self, view: Task, row: WorkflowExecution, error: TaskError | None) -> Task:
        """Return a work order with the truth about its end."""
        return task_at_close(view, row, error)

    def remedy_for_closed(self, view: Task) -> str:
        """Return how to go on where one was to be cancelled that is closed."""
        if view.status is Status.FAILED:
            return f"`septet move {view.id} cancelled` gives it up."
        return "Nothing of it runs any more."

    async def _moves_of(self, workflow_id: str) -> tuple[Move, ...]:
        return await self.answer_of(workflow_id, "history", tuple[Move, ...]) or ()

    async def _refuse_circle(self, order_id: str, after: Sequence[str]) -> None:
        """See that a new work order closes no circle, as far as the others are on the board already."""

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
            raise CircleError(f"after: they would wait for each other for ever: {circle}.")
