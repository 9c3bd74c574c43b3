"""The paths of the board and of what was kept. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from clients.http.asked import Asked
from clients.http.bodies import OrderId
from clients.http.problems import problems
from septet.contracts.replies import BoardReply, RescuesReply

router = APIRouter(tags=["board"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))
Everything = Annotated[bool, Query(alias="all", description="The checkpoints too.")]


@router.get("/board")
async def get_board(
    asked: Asked, project: Annotated[str | None, Query(description="Only this project.")] = None
) -> BoardReply:
    """Show the work orders by stage."""
    return await asked.board(project)


@router.get("/rescues")
async def get_rescues(asked: Asked, everything: Everything = False) -> RescuesReply:
    """Show the rescues on this host, oldest first."""
    return await asked.rescues(everything=everything)


@router.get("/agent-work-orders/{order_id}/rescues")
async def get_rescues_of(order_id: OrderId, asked: Asked, everything: Everything = False) -> RescuesReply:
    """Show the rescues of one work order on this host, oldest first."""
    return await asked.rescues(order_id, everything=everything)
