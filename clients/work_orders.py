"""The typed client: every face asks for work orders here, and gets the same objects."""

import asyncio
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

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
from temporalio.service import RPCError

from clients._circle import refuse_a_circle
from clients._claim import claimed
from clients._closed import task_of_closed, task_of_row
from clients._pending import waiting_for
from clients._refused import refused_of, refused_of_open
from clients._resets import reset, reset_point
from clients._updates import update
from clients._watch import give_up_watch, watch_of, with_watch
from septet.contracts.decisions import HISTORY_KEPT, MoveCall, PlanDecision, PreviousRun, RetryCall
from septet.contracts.names import ORDER_ID, Stage, Status, Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request import watch_id
from septet.contracts.row import MEMO, first_task, row_of, waits_in
from septet.contracts.task import Move, Task
from septet.contracts.transitions import Target, check_move
from septet.errors import AlreadyRunningError, InvalidInputError, NotFoundError, RefusedTransitionError
from septet.system.timestamps import timestamp
from workflows.search_attributes import found_at_start

_QUERY_TIMEOUT: Final = timedelta(seconds=5)
_CANCEL_WITHIN_SECONDS: Final = 20.0
_END_FIRST: Final = "Cancel it first, or wait for its end."

Answer = TypeVar("Answer")
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
        return await self.task((await self.put(order, order_id)).id)

    async def put(self, order: WorkOrderInput, order_id: str | None = None) -> Task:
        """Start a work order and return it as it was asked for: no worker is waited for.

        Raises:
            AlreadyRunningError: The id was used before.
            CircleError: It and others would wait for each other, or it for itself.
            InvalidInputError: It is no id.
            ServerNotReachedError: The server refused.
        """
        order_id = order_id if order_id is not None else f"wo-{secrets.token_hex(4)}"
        if not ORDER_ID.fullmatch(order_id):
            remedy = "Use up to 64 letters, digits, dots, hyphens and underscores."
            raise InvalidInputError(f"{order_id!r} is no id of a work order.", remedy=remedy)
        await refuse_a_circle(self.client, order_id, order.after)
        row = row_of(first_task(order_id, order, waits_in(order), timestamp(datetime.now(UTC))))
        try:
            await self.client.start_workflow(
                "WorkOrder",
                order,
                id=order_id,
                task_queue=self.task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                memo={MEMO: row},
                search_attributes=found_at_start(row),
                static_summary=f"{order.repository} {order.title or f'#{order.issue}'}"[:200],
            )
        except WorkflowAlreadyStartedError as error:
            message = f"The id {order_id} was used before."
            raise AlreadyRunningError(message, remedy=f"Look at it with `septet show {order_id}`.") from error
        except RPCError as error:
            raise refused_of(error, order_id) from error
        return row

    async def task(self, order_id: str) -> Task:
        """Return the work order object.

        Raises:
            NotFoundError: There is no such work order.
        """
        description = await self._describe(order_id)
        if description.status in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED):
            ended = await self._told_at_its_end(order_id, description)
            return await with_watch(self.client, ended) if ended.stage is Stage.REVIEW else ended
        try:
            task: Task = await self._handle(order_id).query(
                "work_order", result_type=Task, rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return task_of_row(description)
        return task_of_closed(task, description)

    async def running_step(self, order_id: str) -> str:
        """Return the step that is under way, or an empty string."""
        return await self._answer(order_id, "running_step", str, "")

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
        description = await self._describe(order_id)
        if description.status is WorkflowExecutionStatus.COMPLETED:
            watch = await watch_of(self.client, order_id)
            return waiting_for(watch) if watch is not None else None
        return waiting_for(description)

    async def wait(self, order_id: str) -> Task:
        """Wait until the work order is closed and return it."""
        try:
            await self._handle(order_id).result()
        except WorkflowFailureError:
            pass
        except RPCError as error:
            raise refused_of(error, order_id) from error
        return await self.task(order_id)

    async def cancel(self, order_id: str, who: str = "", why: str = "") -> Task:
        """End its agent, keep its work in a rescue, and return the closed work order; no worker has to answer.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It is closed already.
        """
        description = await self._describe(order_id)
        if description.status is not WorkflowExecutionStatus.RUNNING:
            task = await self.task(order_id)
            raise RefusedTransitionError(
                f"{order_id} is {task.status.value} and cannot be cancelled.",
                remedy=f"`septet move {order_id} cancelled` gives it up."
                if task.status is Status.FAILED
                else "Nothing of it runs any more.",
            )
        try:
            await self._handle(order_id).cancel(reason=MoveCall(to=Target.CANCELLED, who=who, why=why).told)
        except RPCError as error:
            raise refused_of_open(error, order_id) from error
        return await self._closed_soon(order_id)

    async def move(self, order_id: str, call: MoveCall) -> Task:
        """Move a work order on the board, and return it as it is then.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It cannot move there from where it is; the remedy lists what it can.
            ServerNotReachedError: No worker has answered.
        """
        task = await self.task(order_id)
        check_move(task, call.to)
        again = RetryCall(who=call.who, why=call.why, feedback=call.feedback)
        match task.status, call.to:
            case Status.COMPLETED, Target.EXECUTING:
                return await self._go_on(task, again.model_copy(update={"from_step": Step.IMPLEMENT_PLAN}))
            case Status.COMPLETED, _:
                await self._decide(watch_id(order_id), "move", call)
                return await self.task(order_id)
            case Status.FAILED, Target.EXECUTING:
                return await self._go_on(task, again)
            case Status.FAILED, _:
                await self._go_on(task, again, "give_up")
                return await self._closed_soon(order_id)
            case _:
                return await self._decide(order_id, "move", call)

    async def approve(self, order_id: str, decision: PlanDecision) -> Task:
        """Let a work order go on with the plan that it waits with.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It waits with no plan, or with another one.
            ServerNotReachedError: No worker has answered.
        """
        await self._describe(order_id)
        return await self._decide(order_id, "approve_plan", decision)

    async def reject(self, order_id: str, decision: PlanDecision) -> Task:
        """Let a work order plan again, with the decision's feedback.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It waits with no plan, or with another one; or there is no feedback.
            ServerNotReachedError: No worker has answered.
        """
        await self._describe(order_id)
        return await self._decide(order_id, "reject_plan", decision)

    async def retry(self, order_id: str, call: RetryCall | None = None) -> Task:
        """Go on with a work order: a closed one at a step, by default at the one that failed. Its id stays.

        Of an open one: what is blocked on the board has its turn, and a host that is gone is asked again now.

        Raises:
            NotFoundError: There is no such work order.
            RefusedTransitionError: It goes on by itself, or it never came to that step.
        """
        call = call or RetryCall()
        task = await self.task(order_id)
        if task.is_closed:
            if (task.status, task.stage) == (Status.COMPLETED, Stage.DONE):
                raise RefusedTransitionError(f"{order_id} is done.", remedy="Create another with `septet create`.")
            if task.status is Status.COMPLETED and call.from_step is None:
                message = f"{order_id} is completed."
                raise RefusedTransitionError(
                    message, remedy=f"`septet retry {order_id} --from STEP` goes back to a step."
                )
            return await self._go_on(task, call)
        if task.stage is not Stage.BLOCKED:
            raise RefusedTransitionError(f"{order_id} is {task.status.value}.", remedy=_END_FIRST)
        return await self._decide(order_id, "retry", call)

    async def _go_on(self, task: Task, call: RetryCall, signal: str = "resumed") -> Task:
        """Reset a closed work order to a step; its new run learns why, and what came before."""
        async with claimed(self.client, task.id):
            description = await self._describe(task.id)
            if description.status is WorkflowExecutionStatus.RUNNING:
                raise RefusedTransitionError(f"{task.id} is running.", remedy=_END_FIRST)
            said = PreviousRun(
                came_from=task.stage,
                who=call.who,
                why=call.why,
                feedback=call.feedback,
                history=(await self.history(task.id))[-HISTORY_KEPT:],
            )
            run_id = description.run_id or ""
            event_id = await reset_point(self._handle(task.id, run_id), task, call.from_step)
            await reset(self.client, task.id, run_id, event_id, signal, said)
        await give_up_watch(self.client, task.id)
        return await self.task(task.id)

    async def _decide(self, workflow_id: str, name: str, decision: MoveCall | PlanDecision | RetryCall) -> Task:
        decided = await update(self._handle(workflow_id), name, decision, Task)
        return decided if decided is not None else await self.task(workflow_id)

    async def _closed_soon(self, order_id: str) -> Task:
        """Wait for the end that was asked for, as long as people wait."""
        try:
            async with asyncio.timeout(_CANCEL_WITHIN_SECONDS):
                return await self.wait(order_id)
        except TimeoutError:
            return await self.task(order_id)

    async def _moves_of(self, workflow_id: str) -> tuple[Move, ...]:
        return await self._answer(workflow_id, "history", tuple[Move, ...], ())

    async def _answer(self, workflow_id: str, query: str, kind: type[Answer], otherwise: Answer) -> Answer:
        """Return what a workflow answers, or `otherwise` where no worker can be asked."""
        try:
            answer: Answer = await self._handle(workflow_id).query(
                query, result_type=kind, rpc_timeout=_QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return otherwise
        return answer

    async def _told_at_its_end(self, order_id: str, description: WorkflowExecutionDescription) -> Task:
        try:
            return await self._handle(order_id, description.run_id).result(follow_runs=False)
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return Task.model_validate(cause.details[0], strict=False)
            return task_of_closed(task_of_row(description), description, cause)
        except RPCError as error:
            raise refused_of(error, order_id) from error

    async def _describe(self, order_id: str) -> WorkflowExecutionDescription:
        try:
            description = await self._handle(order_id).describe()
        except RPCError as error:
            raise refused_of(error, order_id) from error
        if description.workflow_type != "WorkOrder":
            raise NotFoundError(f"{order_id} is a workflow, but no work order: {description.workflow_type}.")
        return description

    def _handle(self, order_id: str, run_id: str | None = None) -> Handle:
        return self.client.get_workflow_handle(order_id, run_id=run_id, result_type=Task)
