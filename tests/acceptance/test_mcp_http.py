"""The tools at `/mcp` over streamable HTTP, with the SDK's own client and a real `septet up` behind them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from fakes.mcp_client import checked
from fakes.septet_command import Septet
from fastapi import FastAPI
from mcp import Client

from clients.connection import held
from clients.mcp.over_http import PATH, mcp_at
from clients.operations import connected
from septet.settings import Settings


@asynccontextmanager
async def served_at(septet: Septet) -> AsyncIterator[str]:
    """Serve an application with the tools on a port of loopback, and give their address."""
    environ = septet.env
    operations = await connected(Settings(state_dir=septet.state, environ=environ))
    app = FastAPI()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        async with mcp_at(app, partial(held, operations)):
            task = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
            finally:
                server.should_exit = True
                await task


async def test_tools_are_the_same_over_http(served: Septet, done: dict[str, Any]) -> None:
    """They are listed, answer the objects that the commands print, and tell mistakes as results."""
    async with served_at(served) as address, Client(address) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        detail = await client.call_tool("task_detail", {"id": done["id"]})
        assert checked(tools["task_detail"], detail) == served("show", done["id"], "--json").json
        refused = await client.call_tool("task_detail", {"id": "wo-nobody"})
        assert refused.is_error
        assert checked(tools["task_detail"], refused)["error"]["type"] == "NotFound"
