"""The paths of decisions about a work order. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Depends

from clients.http.bodies import (
    ApproveBody,
    ApproveJson,
    CancelBody,
    CancelJson,
    Connected,
    MoveJson,
    OrderId,
    PromptJson,
    RejectJson,
    RetryJson,
    json_alone,
)
from clients.http.problems import Problem, problems, problems_of_a_body
from clients.operations.merging import merge as merge_here
from septet.contracts.names import Status
from septet.contracts.replies import TaskReply
from septet.contracts.task import Task
from septet.errors import RefusedTransitionError

router = APIRouter(
    prefix="/agent-work-orders/{order_id}",
    tags=["decisions"],
    dependencies=[Depends(json_alone)],
    responses=problems(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY),
)
_WITH_BODY: Final = problems_of_a_body()


@router.post("/move", responses=_WITH_BODY)
async def move(order_id: OrderId, operations: Connected, body: MoveJson) -> TaskReply:
    """Move it on the board; a refusal lists the stages that it may move to."""
    return await operations.decisions.move(order_id, body)


@router.post("/approve", responses=_WITH_BODY)
async def approve(order_id: OrderId, operations: Connected, body: ApproveJson | None = None) -> TaskReply:
    """Approve the plan, or the named findings, that it waits with."""
    word = body or ApproveBody()
    return await operations.decisions.approve(order_id, word.plan_sha256, word.who, word.why, word.findings)


@router.post("/reject", responses=_WITH_BODY)
async def reject(order_id: OrderId, operations: Connected, body: RejectJson) -> TaskReply:
    """Reject the plan, or what was found in the work, with feedback for the agent."""
    return await operations.decisions.reject(order_id, body.feedback, body.plan_sha256, body.who, body.why)


@router.post("/cancel", responses=_WITH_BODY)
async def cancel(order_id: OrderId, operations: Connected, body: CancelJson | None = None) -> TaskReply:
    """Stop it, and keep its work in a rescue."""
    decision = body or CancelBody()
    return await operations.decisions.cancel(order_id, decision.who, decision.why)


@router.post("/merge", responses=_WITH_BODY)
async def merge(order_id: OrderId, operations: Connected, body: CancelJson | None = None) -> TaskReply:
    """Merge its pull request, if the forge is a repository on this machine."""
    del body
    return await merge_here(operations, order_id)


@router.post("/retry", responses=_WITH_BODY)
async def retry(order_id: OrderId, operations: Connected, body: RetryJson | None = None) -> TaskReply:
    """Continue it; a closed one continues at the step that failed, or at an earlier one."""
    return await operations.decisions.retry(order_id, body)


@router.post("/prompt", status_code=HTTPStatus.CONFLICT, response_model=None, responses=_WITH_BODY)
async def prompt(order_id: OrderId, operations: Connected, body: PromptJson) -> Problem:
    """Always refused, with the alternatives: an agent's step has one prompt, which is on record."""
    del body
    raise _no_second_prompt(await operations.orders.get(order_id))


def _no_second_prompt(task: Task) -> RefusedTransitionError:
    where = f"/agent-work-orders/{task.id}"
    ways = {
        Status.PENDING: f"POST {where}/cancel, then create another one that includes it.",
        Status.WAITING: f"Where its plan waits: POST {where}/reject with it as `feedback`.",
        Status.COMPLETED: f"POST {where}/move to executing, with it as `feedback`.",
        Status.FAILED: f"POST {where}/retry with it as `feedback`.",
        Status.CANCELLED: f"POST {where}/retry with it as `feedback`.",
    }
    remedy = ways.get(task.status, f"POST {where}/move to blocked, then {where}/retry with it as `feedback`.")
    return RefusedTransitionError(f"{task.id} is {task.status.value} and takes no further prompt.", remedy=remedy)
