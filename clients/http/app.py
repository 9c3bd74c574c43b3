"""Build the HTTP API, the page and the MCP server as one application."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Path
from fastapi.openapi.utils import get_openapi
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from temporalio.service import RPCError

from clients.http import log_stream, reference, webhooks, work_orders
from clients.http.access import OPEN_PATHS, Guard, MaskedAnswers
from clients.http.answers import Health
from clients.http.bodies import Connected, OrderId, PipelineId, json_alone, read_strictly
from clients.http.problems import Problem, answer_errors, problems, problems_of_a_body
from clients.operations.operation import Operation, is_body
from clients.operations.operations import Operations, OperationsContext, lend
from clients.operations.order_operations import ORDER_OPERATIONS
from clients.operations.project_operations import BUDGET_OPERATIONS
from clients.page.key import deciding_key, new_page_key
from clients.page.routes import page_router, temporal_ui
from septet.contracts.intake import IntakeId
from septet.contracts.replies import Reply

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"


def mcp_route(operations: Operations) -> Route:
    """Return the route of the MCP endpoint; the application must guard this route like all others."""
    return Route(PATH, _Endpoint(partial(lend, operations)), include_in_schema=False)


@dataclass(slots=True)
class _Endpoint:
    """The MCP endpoint; each request has its own MCP session, so no state is lost when this process ends."""

    context: OperationsContext
    _sessions: "Callable[[], StreamableHTTPSessionManager] | None" = None
    _preparing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._preparing:  # two that come at once import nothing twice
            if self._sessions is None:
                self._sessions = await asyncio.to_thread(_prepare_sessions, self.context)
        sessions = self._sessions()
        async with sessions.run():
            await sessions.handle_request(scope, receive, send)


def _prepare_sessions(context: OperationsContext) -> "Callable[[], StreamableHTTPSessionManager]":
    """Import the MCP server, which takes long, and return the function that creates MCP sessions."""
    from clients.mcp.server import http_sessions

    return http_sessions(context)


_PLACES: Final[dict[str, Any]] = {
    "order_id": OrderId,
    "pipeline_id": PipelineId,
    "intake_id": Annotated[IntakeId, Path(description="The intake's id.")],
}
"""The types of arguments that are part of a route's path, by the argument's name."""


def operations_router() -> APIRouter:
    """Return a router with the routes of all operations that have a route."""
    router = APIRouter()
    for each in (*ORDER_OPERATIONS, *BUDGET_OPERATIONS):
        if each.route:
            method, _, path = each.route.partition(" ")
            statuses = [HTTPStatus.UNPROCESSABLE_ENTITY, *([HTTPStatus.NOT_FOUND] if each.may_miss else [])]
            responses = problems(*statuses)
            if method == "POST":
                responses = problems_of_a_body() | problems(*statuses, HTTPStatus.CONFLICT)
            router.add_api_route(
                path,
                _endpoint_of(each),
                methods=[method],
                name=each.name,
                description=each.text.partition("\n\n")[0],
                tags=[each.tag],
                status_code=HTTPStatus.CREATED if each.creates else None,
                dependencies=[Depends(json_alone)] if method == "POST" else [],
                responses=responses,
            )
    return router


def _endpoint_of(operation: Operation) -> Callable[..., Awaitable[Reply]]:
    """Return the function that FastAPI calls for an operation; the function's signature describes the request."""
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
    """Return an operation's argument as a parameter for FastAPI; a body gets a strict reader of JSON."""
    kind, default = _PLACES.get(argument.name, argument.annotation), argument.default
    if is_body(argument):
        kind = Annotated[kind, read_strictly(kind)]
        if default is not Parameter.empty:
            kind, default = kind | None, None
    return argument.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind, default=default)


_DESCRIPTION: Final = """\
Work orders turn an issue into a pull request with a coding-agent CLI. Every error is a problem (RFC 9457) with a
`remedy`. All paths except `/health`, `/webhooks/…` and this description need the token from the file
`api-token` in the state directory."""
_EVERYWHERE: Final = problems(
    HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE
)
_router = APIRouter(tags=["health"])
_ROUTERS: Final = (_router, work_orders.router, log_stream.router, webhooks.router, reference.router)


@_router.get("/health")
async def health(operations: Connected) -> Health:
    """Say that the API answers, and whether its Temporal server does."""
    try:
        reached = await operations.client.service_client.check_health()
    except RPCError:
        reached = False
    return Health(status="healthy" if reached else "degraded", version=version("septet"), temporal=reached)


@dataclass(frozen=True, slots=True)
class ApiChoices:
    """The settings of the HTTP application."""

    ui_url: str | None = None
    """The address of Temporal's web UI, unless this host's embedded server serves the UI."""
    page_key: str | None = field(default=None, repr=False)
    """The key that opens the page, if there is a token; when absent, a random key that the caller cannot read."""
    user: str = ""
    """The name that histories show for decisions on the page."""
    webhook_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys that check webhooks' signatures, by forge or tracker; webhooks of all others are refused."""


_PLAIN: Final = ApiChoices()


def api_of(operations: Operations, token: str | None, choices: ApiChoices = _PLAIN) -> FastAPI:
    """Return the HTTP application; without a token, the application admits every program on this machine."""
    # FastAPI gives each body an alias, of which Pydantic warns when it makes the body's type ready. FastAPI keeps
    # that warning away as a route is declared; ours are made ready with the first request.
    warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
    app = _Api(
        title="Septet",
        version=version("septet"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=_EVERYWHERE,
    )
    key = None if token is None else choices.page_key or new_page_key()
    app.state.operations = operations
    app.state.token = token
    app.state.webhook_secrets = choices.webhook_secrets
    app.add_middleware(Guard, token=token, deciding_key=None if key is None else deciding_key(key))
    app.add_middleware(MaskedAnswers)
    answer_errors(app)
    for router in (*_ROUTERS, operations_router()):
        app.include_router(router)
    app.include_router(page_router(operations, key, temporal_ui(operations, choices.ui_url), choices.user))
    app.router.routes.append(mcp_route(operations))
    return app


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description, with the schema of errors and the required token."""
        if self.openapi_schema is None:
            about: dict[str, Any] = {"title": self.title, "version": self.version, "description": self.description}
            document = get_openapi(**about, routes=self.routes)
            parts = document["components"]
            parts["schemas"]["Problem"] = Problem.model_json_schema()
            if self.state.token is not None:
                parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                document["security"] = [{"token": []}]
                for path, operations in document["paths"].items():
                    for operation in operations.values():
                        if path in OPEN_PATHS:
                            operation["security"] = []
                        else:
                            operation["responses"]["401"] = _UNAUTHORIZED
            self.openapi_schema = document
        return self.openapi_schema


_UNAUTHORIZED: Final = problems(HTTPStatus.UNAUTHORIZED)[HTTPStatus.UNAUTHORIZED]
