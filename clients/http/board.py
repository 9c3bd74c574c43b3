"""The paths of the board and of what was kept. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from clients.http.bodies import After, Connected, Limit, OrderId, RestoreJson, json_alone
from clients.http.problems import problems, problems_of_a_body
from clients.temporal.board import TASKS_AT_ONCE
from septet.contracts.replies import BoardReply, RescuesReply, RestoredReply

router = APIRouter(tags=["board"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))
Project = Annotated[str | None, Query(pattern=r'^[^"\\\x00-\x1f]{1,200}$', description="Only this project.")]
Everything = Annotated[bool, Query(alias="all", description="The checkpoints too.")]


@router.get("/board", responses=problems(HTTPStatus.NOT_FOUND))
async def get_board(
    operations: Connected, project: Project = None, limit: Limit = TASKS_AT_ONCE, after: After = ""
) -> BoardReply:
    """Show a page of the work orders by stage, with the numbers of all of them."""
    return await operations.board.page(project, after=after, limit=limit)


@router.get("/rescues")
async def get_rescues(operations: Connected, everything: Everything = False) -> RescuesReply:
    """Show the rescues on this host, oldest first."""
    return await operations.rescues.list(everything=everything)


@router.post(
    "/rescues/restore",
    dependencies=[Depends(json_alone)],
    responses={**problems_of_a_body(), **problems(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)},
)
async def restore(operations: Connected, body: RestoreJson) -> RestoredReply:
    """Restore a snapshot, bit for bit, to a new folder of the server's choice, and say which."""
    return await operations.rescues.restore(body.snapshot)


@router.get("/agent-work-orders/{order_id}/rescues")
async def get_rescues_of(order_id: OrderId, operations: Connected, everything: Everything = False) -> RescuesReply:
    """Show the rescues of one work order on this host, oldest first."""
    return await operations.rescues.list(order_id, everything=everything)
