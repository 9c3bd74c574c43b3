"""The tools at `/mcp` of `septet up`, over streamable HTTP, with the SDK's own client."""

from typing import Any

import httpx2
import pytest
from fakes.mcp_client import checked
from fakes.mcp_lines import VERSION, WITH_TASKS
from fakes.septet_command import WITHIN_SECONDS, Septet
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.faces


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_are_the_same_over_http(served: Septet, done: dict[str, Any], mode: str) -> None:
    """With the API's token the tools are listed, return the commands' objects, and return mistakes as results."""
    with served.api as api:
        address, token = f"{api.base_url}/mcp", api.headers["authorization"]
    async with httpx2.AsyncClient(
        headers={"Authorization": token}, trust_env=False, timeout=WITHIN_SECONDS
    ) as http:
        async with Client(streamable_http_client(address, http_client=http), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            detail = await client.call_tool("task_detail", {"id": done["id"]})
            assert checked(tools["task_detail"], detail) == served("show", done["id"], "--json").json
            refused = await client.call_tool("task_detail", {"id": "wo-nobody"})
            assert refused.is_error
            assert checked(tools["task_detail"], refused)["error"]["type"] == "NotFound"


def test_tasks_are_the_same_over_http(served: Septet, done: dict[str, Any]) -> None:
    """A request that declares the extension gets a work order as a task, without a session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": WITH_TASKS,
    }
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {"taskId": done["id"], "_meta": meta},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tasks/get",
        "Mcp-Name": done["id"],
    }
    with served.api as api:
        task = api.post("/mcp", json=asked, headers=headers).json()["result"]
    assert (task["resultType"], task["status"]) == ("complete", "completed")
    assert task["result"]["structuredContent"]["task"] == done
