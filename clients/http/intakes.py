"""The paths of intakes. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path

from clients.http.bodies import Connected, json_alone, read_strictly
from clients.http.problems import problems, problems_of_a_body
from septet.contracts.intake import IntakeId, IntakeInput, IntakeRemovedReply, IntakeReply, IntakesReply

router: Final = APIRouter(prefix="/intakes", tags=["intakes"], responses=problems(HTTPStatus.UNPROCESSABLE_ENTITY))
IntakeJson = Annotated[IntakeInput, read_strictly(IntakeInput)]


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    dependencies=[Depends(json_alone)],
    responses={**problems_of_a_body(), **problems(HTTPStatus.CONFLICT)},
)
async def add_intake(intake: IntakeJson, operations: Connected) -> IntakeReply:
    """Start a work order for each open issue with a label, from now on."""
    return await operations.starting.add_intake(intake)


@router.get("")
async def list_intakes(operations: Connected) -> IntakesReply:
    """List the intakes."""
    return await operations.intakes.list()


@router.delete("/{intake_id}", responses=problems(HTTPStatus.NOT_FOUND))
async def remove_intake(
    intake_id: Annotated[IntakeId, Path(description="The intake's id.")], operations: Connected
) -> IntakeRemovedReply:
    """Take no more issues; work orders that were started continue."""
    return await operations.intakes.remove(intake_id)
