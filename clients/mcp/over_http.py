"""The MCP server at `/mcp` of the HTTP API, for agents that run for a long time or on other machines."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from clients.operations.operations import Operations, OperationsContext, lend

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"


def mcp_route(operations: Operations) -> Route:
    """Return the route with the tools; the application must guard this route like its other routes."""
    return Route(PATH, _Endpoint(partial(lend, operations)), include_in_schema=False)


@dataclass(slots=True)
class _Endpoint:
    """Answers each request without a session, so that the end of a process loses no state between requests."""

    context: OperationsContext
    _sessions: "Callable[[], StreamableHTTPSessionManager] | None" = None
    _preparing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        async with self._preparing:  # two that come at once import nothing twice
            if self._sessions is None:
                self._sessions = await asyncio.to_thread(_prepare_sessions, self.context)
        sessions = self._sessions()
        async with sessions.run():
            await sessions.handle_request(scope, receive, send)


def _prepare_sessions(context: OperationsContext) -> "Callable[[], StreamableHTTPSessionManager]":
    """Return a factory of sessions; only this function imports the MCP server, because the import takes long."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from clients.mcp.server import mcp_server

    return partial(
        StreamableHTTPSessionManager,
        mcp_server(context, beside=False),
        json_response=True,
        stateless=True,
    )
