"""The routes that the table of operations makes."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path

from clients.http.bodies import Connected, OrderId, PipelineId, json_alone, read_strictly
from clients.http.problems import problems, problems_of_a_body
from clients.operations.budget_table import BUDGET_OPERATIONS
from clients.operations.order_table import ORDER_OPERATIONS
from clients.operations.table import Operation, is_body
from septet.contracts.intake import IntakeId
from septet.contracts.replies import Reply

_PLACES: Final[dict[str, Any]] = {
    "order_id": OrderId,
    "pipeline_id": PipelineId,
    "intake_id": Annotated[IntakeId, Path(description="The intake's id.")],
}
"""Arguments that are part of the path."""


def operations_router() -> APIRouter:
    """Return the routes of all operations that have one."""
    router = APIRouter()
    for each in (*ORDER_OPERATIONS, *BUDGET_OPERATIONS):
        if each.route:
            method, _, path = each.route.partition(" ")
            router.add_api_route(
                path,
                _endpoint_of(each),
                methods=[method],
                name=each.name,
                description=each.text.partition("\n\n")[0],
                tags=[each.tag],
                status_code=HTTPStatus.CREATED if each.creates else None,
                dependencies=[Depends(json_alone)] if method == "POST" else [],
                responses=_problems_of(each, method),
            )
    return router


def _problems_of(operation: Operation, method: str) -> dict[int | str, dict[str, Any]]:
    statuses = [HTTPStatus.UNPROCESSABLE_ENTITY]
    if operation.may_miss:
        statuses.append(HTTPStatus.NOT_FOUND)
    if method != "POST":
        return problems(*statuses)
    return problems_of_a_body() | problems(*statuses, HTTPStatus.CONFLICT)


def _endpoint_of(operation: Operation) -> Callable[..., Awaitable[Reply]]:
    """Return a function with the signature by which the framework reads a request."""
    bodies = {each.name: each.default for each in operation.arguments if is_body(each)}

    async def endpoint(operations: Connected, **given: object) -> Reply:
        absent = {name: default for name, default in bodies.items() if given[name] is None}
        reply: Reply = await operation.run(operations, **given | absent)
        return reply

    connected = Parameter("operations", Parameter.KEYWORD_ONLY, annotation=Connected)
    parameters = [connected, *map(_parameter_of, operation.arguments)]
    vars(endpoint)["__signature__"] = Signature(parameters, return_annotation=operation.reply)
    return endpoint


def _parameter_of(argument: Parameter) -> Parameter:
    """Return an argument as the framework reads it: a body strictly, and none if the body may be absent."""
    kind, default = _PLACES.get(argument.name, argument.annotation), argument.default
    if is_body(argument):
        kind = Annotated[kind, read_strictly(kind)]
        if default is not Parameter.empty:
            kind, default = kind | None, None
    return argument.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind, default=default)
