"""The SDK's own client of a real `septet mcp`, which it starts as an agent does."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fakes.septet_command import PROGRAMS, Septet
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, Implementation, Tool, ToolAnnotations

WHO: Final = Implementation(name="a-test", version="1")


@dataclass(frozen=True)
class Tools:
    client: Client
    tools: Mapping[str, Tool]

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        answered = await self.client.call_tool(name, arguments)
        assert not answered.is_error, answered
        return checked(self.tools[name], answered)

    async def refused(self, name: str, **arguments: Any) -> dict[str, str]:
        answered = await self.client.call_tool(name, arguments)
        assert answered.is_error, answered
        told: dict[str, str] = checked(self.tools[name], answered)["error"]
        assert set(told) == {"type", "message", "remedy"}
        return told

    def hints(self, name: str) -> ToolAnnotations:
        hints = self.tools[name].annotations
        assert hints is not None
        return hints


def checked(tool: Tool, answered: CallToolResult) -> dict[str, Any]:
    """Return the object of an answer, and check it against the tool's schema and the answer's text."""
    schema = tool.output_schema
    assert schema is not None
    structured: dict[str, Any] = answered.structured_content
    Draft202012Validator(schema).validate(structured)
    (text,) = answered.content
    assert text.type == "text"
    assert json.loads(text.text) == structured
    return structured


@asynccontextmanager
async def tools_of(septet: Septet, log: Path, cwd: Path | None = None, *options: str) -> AsyncIterator[Tools]:
    command = StdioServerParameters(
        command=str(PROGRAMS / "septet"), args=["mcp", *options], env=septet.env, cwd=cwd
    )
    with log.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(command, errlog=errors), client_info=WHO) as client:
            listed = await client.list_tools()
            yield Tools(client, {tool.name: tool for tool in listed.tools})
