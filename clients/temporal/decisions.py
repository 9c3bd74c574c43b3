"""Carry out people's decisions on a work order, and return the changed work order."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from clients.executions.messages import WorkflowCalls, server_refusal, unanswered
from clients.executions.seals import seals
from clients.executions.task_rows import watch_of
from clients.temporal.resets import claim, delete_run, reset, reset_point
from clients.temporal.work_orders import WorkOrders
from septet.contracts.decisions import (
    HISTORY_KEPT,
    FindingsDecision,
    MoveCall,
    PlanDecision,
    PreviousRun,
    RetryCall,
    Target,
    check_move,
    parse_decision,
)
from septet.contracts.names import LOCAL_PULL, Stage, Status, Step, watch_id
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import InvalidInputError, RefusedTransitionError
from workflows.wire.inputs import NOT_VALID
from workflows.wire.search_attributes import HOST

_END_FIRST: Final = "Cancel it first, or wait until it ends."


@dataclass(frozen=True, slots=True)
class OrderDecisions:
    """Carries out decisions on the work orders of one namespace.

    All methods raise `NotFoundError` for a missing work order, `ServerNotReachedError` if no worker answers, and
    `RefusedTransitionError` if the work order's state does not allow the decision.
    """

    orders: WorkOrders
    update_id: str | None = None
    """The id of the decision's update; a workflow run accepts the id once, so the decision may be sent twice."""
    nobody_works_on: Callable[[WorkflowExecutionDescription], Awaitable[str]] | None = None

    async def cancel(self, order_id: str, who: str = "", why: str = "") -> TaskReply:
        """Stop a work order's agent, save the work in a rescue, and return the work order.

        Without a worker, the cancel is only requested, and the reply reports the lack of a worker.

        If payloads are sealed, the reason is omitted, because the server could read the reason of a cancel.
        """
        call = MoveCall(to=Target.CANCELLED, who=who, why=why)
        if await self._is_reworked(order_id):
            await self._update(watch_id(order_id), "move", call.model_copy(update={"to": Target.REVIEW}))
            return TaskReply(task=await self.orders.get(order_id))
        reason = (call.model_copy(update={"why": ""}) if seals(self.orders.client) else call).reason_line
        await self.orders.ask_to_cancel(order_id, reason)
        row = await self.orders.describe(order_id)
        if self.nobody_works_on is not None and (nobody := await self.nobody_works_on(row)):
            task = await self.orders.without_worker(row)
            return TaskReply(task=task.model_copy(update={"stuck": nobody}))
        return TaskReply(task=await self.orders.wait_briefly(order_id))

    async def _is_reworked(self, order_id: str) -> bool:
        """Return whether an agent works on the pull request of a completed work order."""
        watch = await watch_of(self.orders.client, order_id)
        if watch is None or watch.status is not WorkflowExecutionStatus.RUNNING:
            return False
        task = await self.orders.get(order_id)
        return (task.status, task.stage) == (Status.COMPLETED, Stage.EXECUTING)

    async def move(self, order_id: str, call: MoveCall) -> TaskReply:
        """Move a work order on the board; a refusal lists the stages that the work order may move to."""
        task = await self.orders.get(order_id)
        check_move(task, call.to)
        again = RetryCall(who=call.who, why=call.why, feedback=call.feedback)
        match task.status, call.to:
            case Status.COMPLETED, Target.EXECUTING:
                call_again = again.model_copy(update={"from_step": Step.IMPLEMENT_PLAN})
                return await self._resume(task, call_again)
            case Status.COMPLETED, _:
                await self._update(watch_id(order_id), "move", call)
                return TaskReply(task=await self.orders.get(order_id))
            case Status.FAILED, Target.EXECUTING:
                return await self._resume(task, again)
            case Status.FAILED, Target.CANCELLED if _was_refused(task):
                await delete_run(self.orders.client, order_id)  # a refused input never became a work order
                return TaskReply(task=task.model_copy(update={"status": Status.CANCELLED, "stage": Stage.DONE}))
            case Status.FAILED, _:
                await self._resume(task, again, "give_up")
                return TaskReply(task=await self.orders.wait_briefly(order_id))
            case _:
                return await self._decide(order_id, "move", call)

    async def approve(
        self,
        order_id: str,
        plan_sha256: str | None = None,
        who: str = "",
        why: str = "",
        findings: tuple[str, ...] = (),
    ) -> TaskReply:
        """Approve the plan that waits now; `plan_sha256`, if given, must be the SHA-256 of this plan.

        With `findings`, approve the findings with these ids instead of a plan.
        """
        if findings and plan_sha256:
            raise InvalidInputError("findings: decide on them without naming a plan.")
        plan = plan_sha256 or (None if findings else await self._waiting_plan(order_id))
        if plan is None:
            passed = parse_decision(FindingsDecision, findings=findings, who=who, why=why)
            return await self._decide_findings(order_id, "approve_findings", passed)
        decision = parse_decision(PlanDecision, plan_sha256=plan, who=who, why=why)
        return await self._decide_described(order_id, "approve_plan", decision)

    async def reject(
        self, order_id: str, feedback: str, plan_sha256: str | None = None, who: str = "", why: str = ""
    ) -> TaskReply:
        """Reject the plan that waits now, with feedback; `plan_sha256`, if given, must be the plan's SHA-256.

        The agent plans again. If findings wait instead of a plan, the agent removes the findings.
        """
        plan = plan_sha256 or await self._waiting_plan(order_id)
        if plan is None:
            rejected = parse_decision(FindingsDecision, who=who, why=why, feedback=feedback)
            return await self._decide_findings(order_id, "reject_findings", rejected)
        decision = parse_decision(PlanDecision, plan_sha256=plan, who=who, why=why, feedback=feedback)
        return await self._decide_described(order_id, "reject_plan", decision)

    async def retry(self, order_id: str, call: RetryCall | None = None) -> TaskReply:
        """Continue a work order; a closed work order continues at a step, by default the failed step.

        An open work order must be blocked: it then starts, or probes its silent host at once.
        """
        call = call or RetryCall()
        task = await self.orders.get(order_id)
        if not task.is_closed:
            if task.stage is not Stage.BLOCKED:
                decide = f"Approve its plan, or reject it: septet approve {order_id}"
                remedy = decide if task.waits_for_a_decision else task.question or _END_FIRST
                raise RefusedTransitionError(f"{order_id} is {task.status.value}.", remedy=remedy)
            return await self._decide(order_id, "retry", call)
        if (task.status, task.stage) == (Status.COMPLETED, Stage.EXECUTING):
            message = f"An agent works on the pull request of {order_id}."
            raise RefusedTransitionError(message, remedy=f"`septet cancel {order_id}` ends that first.")
        if task.has_plan_alone:
            return await self._resume(task, call)
        if (task.status, task.stage) == (Status.COMPLETED, Stage.DONE):
            raise RefusedTransitionError(f"{order_id} is done.", remedy="Create another with `septet create`.")
        if task.status is Status.COMPLETED and call.from_step is None:
            _refuse_closed(task)
            remedy = f"Go back to a step: septet retry {order_id} --from {Step.IMPLEMENT_PLAN}"
            raise RefusedTransitionError(f"{order_id} is completed.", remedy=remedy)
        return await self._resume(task, call)

    async def refresh(self, order_id: str) -> TaskReply:
        """Make a work order check at once what it waits for: a pull request, a host, or earlier work orders."""
        orders = self.orders
        row, watch = await orders.describe(order_id), await watch_of(orders.client, order_id)
        try:
            for each in (row, watch):
                if each is not None and each.status is WorkflowExecutionStatus.RUNNING:
                    await orders.client.get_workflow_handle(each.id).signal("nudge")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it closed meanwhile
                raise server_refusal(error) from error
        return TaskReply(task=await self.orders.get(order_id))

    async def _resume(self, task: Task, call: RetryCall, signal: str = "resumed") -> TaskReply:
        """Reset a closed work order to a step; the new run receives the decision and the earlier history."""
        orders = self.orders
        if task.error is not None and _was_refused(task):
            message = f"{task.id} cannot continue: {task.error.message}"
            remedy = f"Start a new work order. `septet move {task.id} cancelled` takes this one off the board."
            raise RefusedTransitionError(message, remedy=remedy)
        if LOCAL_PULL.fullmatch(task.pr_url or ""):
            _refuse_closed(task)  # a local pull request cannot be reopened
        async with claim(orders.client, task.id):
            description = await orders.describe(task.id)
            if description.status is WorkflowExecutionStatus.RUNNING:
                raise RefusedTransitionError(f"{task.id} is running.", remedy=_END_FIRST)
            resumed = PreviousRun(
                came_from=task.stage,
                who=call.who,
                why=call.why,
                feedback=call.feedback,
                history=(await orders.history(task.id))[-HISTORY_KEPT:],
                host=description.typed_search_attributes.get(HOST, ""),
                usage=task.usage,
            )
            run = orders.handle(task.id, description.run_id)
            event_id = await reset_point(run, task, call.from_step)
            await reset(orders.client, run, event_id, signal, resumed)
        await _give_up_watch(orders.client, task.id)
        return TaskReply(task=await orders.get(task.id))

    async def _decide_findings(self, order_id: str, update: str, decision: FindingsDecision) -> TaskReply:
        """Decide on the findings of a work order's step, or of a round on the work order's pull request."""
        if not await self._is_reworked(order_id):
            return await self._decide_described(order_id, update, decision)
        await self._update(watch_id(order_id), update, decision)
        return TaskReply(task=await self.orders.get(order_id))

    async def _decide_described(
        self, order_id: str, update: str, decision: PlanDecision | FindingsDecision
    ) -> TaskReply:
        await self.orders.describe(order_id)
        return await self._decide(order_id, update, decision)

    async def _decide(
        self, order_id: str, update: str, decision: MoveCall | PlanDecision | FindingsDecision | RetryCall
    ) -> TaskReply:
        task = await self._update(order_id, update, decision)
        return TaskReply(task=task if task is not None else await self.orders.get(order_id))

    async def _update(
        self, workflow_id: str, update: str, decision: MoveCall | PlanDecision | FindingsDecision | RetryCall
    ) -> Task | None:
        calls = WorkflowCalls(self.orders.handle(workflow_id), self.orders.subject)
        return await calls.update(update, decision, Task, update_id=self.update_id)

    async def _waiting_plan(self, order_id: str) -> str | None:
        """Return the SHA-256 of the plan that waits now; `None` if the work order waits because of findings."""
        task = await self.orders.get(order_id)
        if task.waits_for_a_decision and not task.steps:
            raise unanswered(task)
        if task.findings:
            return None
        if task.plan_sha256 is None:
            message = f"{order_id} has no plan to decide on: it is in {task.stage.value} ({task.status.value})."
            why = "Its plan is not there yet, or it was started without `--approve-plan`"
            remedy = f"{why}: septet show {order_id}"
            raise RefusedTransitionError(message, remedy=remedy)
        return task.plan_sha256


def _refuse_closed(task: Task) -> None:
    """Refuse to continue a work order whose pull request was closed; a second pull request is not possible."""
    if task.word == "closed" and task.error is not None:
        message = f"The pull request of {task.id} was closed without a merge."
        raise RefusedTransitionError(message, remedy=task.error.remedy)


def _was_refused(task: Task) -> bool:
    """Return whether a work order failed because its input was not valid."""
    return task.error is not None and task.error.message.startswith(NOT_VALID)


async def _give_up_watch(client: Client, order_id: str) -> None:
    """Cancel the watch of a work order that continues, so that the board shows only the work order.

    If no worker carries out the cancel within 10 s, the watch is terminated.

    Raises:
        ServerNotReachedError: The server does not answer, or refuses.
    """
    watch = client.get_workflow_handle(watch_id(order_id))
    try:
        await watch.cancel()
        try:
            async with asyncio.timeout(10.0):
                await watch.result()
        except WorkflowFailureError:
            return
        except TimeoutError:
            await watch.terminate("its work continues")
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise server_refusal(error) from error
