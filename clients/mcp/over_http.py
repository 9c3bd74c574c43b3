"""The server at `/mcp` of the HTTP API, for agents that run for long or elsewhere."""

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
    """Return the route with the tools, for an application that guards it as it guards the others."""
    return Route(PATH, _Endpoint(partial(lend, operations)), include_in_schema=False)


@dataclass(slots=True)
class _Endpoint:
    """Answers each request by itself: nothing is kept between two, which the end of a process could lose."""

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
    """Import what nobody has to wait for who calls no tool."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from clients.mcp.server import mcp_server

    return partial(
        StreamableHTTPSessionManager,
        mcp_server(context, beside=False),
        json_response=True,
        stateless=True,
    )
