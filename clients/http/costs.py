"""The path of costs: it answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from clients.http.bodies import Connected
from clients.http.problems import problems
from septet.contracts.costs import Since
from septet.contracts.names import CostKey
from septet.contracts.replies import CostsReply

router = APIRouter(tags=["budgets"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))


@router.get("/costs")
async def get_costs(
    operations: Connected,
    by: Annotated[CostKey, Query(description="What is told apart.")] = "project",
    since: Annotated[Since, Query(description="Count from this week on: `2026-W40`, `4w` or `30d`.")] = "",
    project: Annotated[str, Query(max_length=200, description="Only this project, such as `o/r`.")] = "",
) -> CostsReply:
    """Show what agents have cost, by project, step, agent, login, model or week."""
    return await operations.costs.show(by, since, project)
