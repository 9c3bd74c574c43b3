"""The paths of the board and of what was kept. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from clients.http.asked import Asked, Limit
from clients.http.bodies import OrderId
from clients.http.problems import problems
from clients.rows import PAGE
from septet.contracts.replies import BoardReply, RescuesReply

router = APIRouter(tags=["board"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))
Project = Annotated[str | None, Query(pattern=r'^[^"\\\x00-\x1f]{1,200}$', description="Only this project.")]
After = Annotated[str, Query(description="The `next` of the page before.")]
Everything = Annotated[bool, Query(alias="all", description="The checkpoints too.")]


@router.get("/board", responses=problems(HTTPStatus.NOT_FOUND))
async def get_board(asked: Asked, project: Project = None, limit: Limit = PAGE, after: After = "") -> BoardReply:
    """Show a page of the work orders by stage, with the numbers of all of them."""
    return await asked.board(project, after=after, limit=limit)


@router.get("/rescues")
async def get_rescues(asked: Asked, everything: Everything = False) -> RescuesReply:
    """Show the rescues on this host, oldest first."""
    return await asked.rescues(everything=everything)


@router.get("/agent-work-orders/{order_id}/rescues")
async def get_rescues_of(order_id: OrderId, asked: Asked, everything: Everything = False) -> RescuesReply:
    """Show the rescues of one work order on this host, oldest first."""
    return await asked.rescues(order_id, everything=everything)
