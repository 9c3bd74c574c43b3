"""Return errors as problem details (RFC 9457) with a remedy."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from temporalio.service import RPCError, RPCStatusCode

from clients.error_reply import error_reply
from clients.executions.messages import server_refusal
from septet.contracts.wire import Wire
from septet.contracts.wording import place_and_reason
from septet.errors import (
    AgentMissingError,
    AlreadyRunningError,
    CircleError,
    InvalidInputError,
    NotFoundError,
    RefusedTransitionError,
    SeptetError,
    ServerNotReachedError,
    TrackerUnavailableError,
    UsageError,
    WorkspaceBusyError,
)

MEDIA_TYPE: Final = "application/problem+json"
Headers = Mapping[str, str]

_STATUS: Final[Mapping[type[SeptetError], HTTPStatus]] = {
    UsageError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidInputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFoundError: HTTPStatus.NOT_FOUND,
    ServerNotReachedError: HTTPStatus.SERVICE_UNAVAILABLE,
    TrackerUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    RefusedTransitionError: HTTPStatus.CONFLICT,
    WorkspaceBusyError: HTTPStatus.CONFLICT,
    AlreadyRunningError: HTTPStatus.CONFLICT,
    AgentMissingError: HTTPStatus.UNPROCESSABLE_ENTITY,
    CircleError: HTTPStatus.CONFLICT,
}
_KIND: Final = "urn:septet:error:"
_LOOK_AT_OPENAPI: Final = "GET /openapi.json lists the paths and what they take."
_log = structlog.get_logger()


class Problem(Wire):
    """An error: its kind, what happened, and the remedy."""

    type: str
    """`urn:septet:error:<kind>`; the kind is the `type` of the command line's errors."""
    title: str
    """The kind in words."""
    status: int
    detail: str
    """What happened, and where."""
    remedy: str = ""
    """What to do, so that the request succeeds or the work continues."""


def problems(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of the error answers with these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        int(status): {"description": status.phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def problems_of_a_body() -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of the error answers that every route with a request body may give."""
    refused = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)
    return problems(*refused, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def problem(
    status: HTTPStatus, kind: str, detail: str, remedy: str = "", *, headers: Headers | None = None
) -> JSONResponse:
    """Return an error response with problem details."""
    body = Problem(type=f"{_KIND}{kind}", title=status.phrase, status=status, detail=detail, remedy=remedy)
    return _answer(body, headers)


def problem_of(error: SeptetError) -> JSONResponse:
    """Return the HTTP answer for an error; the status is that of the error's nearest class in `_STATUS`."""
    statuses = (_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    status = next(statuses, HTTPStatus.INTERNAL_SERVER_ERROR)
    title = (type(error).__doc__ or "").strip().splitlines()[0]
    kind = f"{_KIND}{type(error).__name__.removesuffix('Error')}"
    return _answer(Problem(type=kind, title=title, status=status, detail=error.message, remedy=error.remedy))


def _answer(body: Problem, headers: Headers | None = None) -> JSONResponse:
    return JSONResponse(body.model_dump(mode="json"), body.status, headers, media_type=MEDIA_TYPE)


def answer_errors(app: FastAPI) -> None:
    """Make the application return problem details for errors of routes, unknown paths and unknown methods."""

    @app.exception_handler(SeptetError)
    async def septet_error(_: Request, error: SeptetError) -> JSONResponse:
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        body = getattr(request.scope.get("route"), "body_field", None)
        model = body.field_info.annotation if body is not None else None
        fields = tuple(getattr(model, "model_fields", ()))
        messages = [_message(detail, fields) for detail in error.errors()[:10]]
        return problem_of(InvalidInputError("; ".join(messages) + ".", remedy=_LOOK_AT_OPENAPI))

    @app.exception_handler(RPCError)
    async def server_error(_: Request, error: RPCError) -> JSONResponse:
        if error.status is RPCStatusCode.NOT_FOUND:
            return problem_of(NotFoundError(error.message))
        return problem_of(server_refusal(error))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        status, headers = HTTPStatus(error.status_code), error.headers
        detail = str(error.detail)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            # The router itself names the methods of one route, and a path may have several routes.
            paths: Mapping[str, Mapping[str, Any]] = request.app.openapi()["paths"]
            matches = [paths[path] for path in paths if compile_path(path)[0].match(request.url.path)]
            methods = sorted({method.upper() for match in matches for method in match})
            allowed = ", ".join(methods) or (headers or {}).get("Allow", "")
            headers, detail = {"Allow": allowed}, f"{request.url.path} takes {allowed}."
        return problem(status, status.phrase.title().replace(" ", ""), detail, _LOOK_AT_OPENAPI, headers=headers)

    @app.exception_handler(OSError)
    async def machine_error(request: Request, error: OSError) -> JSONResponse:
        _log.error("request_broke", path=request.url.path, method=request.method, error=type(error).__name__)
        body = error_reply(error).error
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, body.type, body.message, body.remedy)

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> JSONResponse:
        _log.error("request_broke", path=request.url.path, method=request.method, exc_info=error)
        remedy = "This is a defect in Septet. The server's log has more."
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        return problem(status, "Broken", f"The request failed: {type(error).__name__}.", remedy)


def _message(detail: Mapping[str, Any], fields: Iterable[str]) -> str:
    """Return a message with the place and the reason of a mistake in a request, but never the wrong value."""
    where, *inner = detail["loc"] or ("body",)
    if detail["type"] == "json_invalid":
        at = next((part for part in detail["loc"] if isinstance(part, int)), None)
        reason = str((detail.get("ctx") or {}).get("error", "it cannot be read"))
        place = f" at character {at}" if at is not None else ""
        return f"The body is not valid JSON: {reason[:1].lower()}{reason[1:]}{place}"
    if where == "body":
        return place_and_reason({**detail, "loc": inner}, fields, within="the body")
    return f"{where} parameter {place_and_reason({**detail, 'loc': inner})}"
