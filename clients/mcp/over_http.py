"""The server at `/mcp` of the HTTP API, for agents that are started elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Route

from clients.mcp.server import Reach, mcp_server

PATH: Final = "/mcp"


@asynccontextmanager
async def mcp_at(app: FastAPI, reach: Reach) -> AsyncIterator[None]:
    """Serve the tools at `/mcp` of an application for as long as the block lasts, behind all that guards it.

    No session is kept between requests, so that no end of the server and no other process beside it loses one.
    """
    sessions = StreamableHTTPSessionManager(mcp_server(reach), json_response=True, stateless=True)
    app.router.routes.append(Route(PATH, StreamableHTTPASGIApp(sessions), include_in_schema=False))
    async with sessions.run():
        yield
