"""The API as one application."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.warnings import UnsupportedFieldAttributeWarning
from temporalio.service import RPCError

from clients.http import log_stream, reference, webhooks, work_orders
from clients.http.access import OPEN_PATHS, Guard, MaskedAnswers
from clients.http.answers import Health
from clients.http.bodies import Connected
from clients.http.problems import Problem, answer_errors, problems
from clients.http.routes import operations_router
from clients.mcp.over_http import mcp_route
from clients.operations.operations import Operations
from clients.page.key import deciding_key, new_page_key
from clients.page.routes import page_router, temporal_ui

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
    """How the hosts that serve the application differ."""

    ui_url: str | None = None
    """The address of Temporal's web UI, if it is not that of this host's embedded server."""
    page_key: str | None = field(default=None, repr=False)
    """The key that opens the page, if there is a token; a key that nobody knows when absent."""
    user: str = ""
    """Who decides on the page, as histories show it."""
    webhook_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By forge: the key of the signatures of its deliveries; those of other forges are refused."""


_PLAIN: Final = ApiChoices()


def api_of(operations: Operations, token: str | None, choices: ApiChoices = _PLAIN) -> FastAPI:
    """Return the application; without a token everybody on this machine is let in."""
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
        """Return the description, with the shape of problems and the token."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes
            )
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
