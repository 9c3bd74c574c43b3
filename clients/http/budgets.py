"""The paths of budgets. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from clients.http.bodies import After, Connected, Limit, LimitJson, RaiseJson, json_alone
from clients.http.problems import problems, problems_of_a_body
from clients.temporal.budgets import BUDGETS_AT_ONCE
from septet.contracts.budget import BudgetName, LimitCall, RaiseCall
from septet.contracts.replies import BudgetReply, BudgetsReply, RaiseReply

router = APIRouter(tags=["budgets"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))
_WITH_BODY = {
    **problems_of_a_body(),
    **problems(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
}
Name = Annotated[BudgetName, Query(description="`day`, `project/NAME`, `pipeline/ID`, or the id of a work order.")]


@router.get("/budgets", responses=problems(HTTPStatus.NOT_FOUND))
async def get_budgets(operations: Connected, limit: Limit = BUDGETS_AT_ONCE, after: After = "") -> BudgetsReply:
    """Show the budgets, those of the day and of projects first: what was used, and how many work orders wait."""
    return await operations.budgets.list(after=after, limit=limit)


@router.get("/budgets/show", responses=problems(HTTPStatus.NOT_FOUND))
async def get_budget(operations: Connected, budget: Name) -> BudgetReply:
    """Show one budget: its limit, what was used by step and day, and who waits."""
    return await operations.budgets.show(budget)


@router.post("/budgets/set", dependencies=[Depends(json_alone)], responses=_WITH_BODY)
async def set_budget(operations: Connected, body: LimitJson) -> BudgetReply:
    """Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room."""
    call = LimitCall(limit=body.limit, step=body.step, who=body.who)
    return await operations.budgets.set(body.budget, call)


@router.post("/budgets/raise", dependencies=[Depends(json_alone)], responses=_WITH_BODY)
async def raise_budget(operations: Connected, body: RaiseJson) -> RaiseReply:
    """Raise a budget by an amount; work orders that wait for it continue.

    With `expected`, nothing is added to another limit than that one, and `is_raised` is false.
    """
    call = RaiseCall(limit=body.limit, step=body.step, who=body.who, expected=body.expected or "")
    return await operations.budgets.raise_limit(body.budget, call)
