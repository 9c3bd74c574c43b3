"""The MCP server, whose tools answer with the same objects as the CLI and the HTTP API."""

from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)
from pydantic import JsonValue

from clients.error_reply import error_reply
from clients.mcp.tasks import TaskMethods, becomes_task, client_name, created_task
from clients.mcp.tools import TOOLS, tool_result
from clients.operations.operations import OperationsContext
from septet.contracts.replies import ErrorReply, Reply, TaskReply
from septet.errors import SeptetError

_INSTRUCTIONS: Final = """\
Septet turns an issue into a pull request with a coding agent, in seven steps that survive every crash. A task is
work on one issue; a pipeline works on many issues, each of them a task. Every answer is {"ok": true, ...} with the
whole new state, or {"ok": false, "error": {type, message, remedy}}: do what the remedy says. If that is a `septet`
command, use the tool that does the same (`show`: task_detail, `create`: create_task, `budget raise`: raise_budget,
`rescue list`: rescues, `pipeline show`: get_pipeline; most others have the command's name). If there is none, ask
a person. A step takes minutes: look again after a while, not at once."""


def http_sessions(context: OperationsContext) -> Callable[[], StreamableHTTPSessionManager]:
    """Return the function that creates MCP sessions for HTTP; the sessions have no state and answer in JSON."""
    server = mcp_server(context, beside=False)
    return partial(StreamableHTTPSessionManager, server, json_response=True, stateless=True)


def mcp_server(connect: OperationsContext, *, beside: bool) -> Server[Any]:
    """Return the MCP server, which connects to Temporal only when an agent calls a tool.

    `beside` is true if an agent on this machine has started the server in the agent's own folder.
    """

    @cache
    def tools() -> list[Tool]:
        return [tool.as_tool() for tool in TOOLS.values()]

    async def list_tools(
        context: ServerRequestContext[Any], request: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del context, request
        return ListToolsResult(tools=tools())

    async def call_tool(
        context: ServerRequestContext[Any], request: CallToolRequestParams
    ) -> CallToolResult | dict[str, JsonValue]:
        tool = TOOLS.get(request.name)
        if tool is None:
            message = f"There is no tool {request.name}. The tools are {', '.join(TOOLS)}."
            raise MCPError(INVALID_PARAMS, message)
        arguments = request.arguments or {}
        if "who" in tool.takes.model_fields:  # the client's program decides, if the agent names nobody
            arguments = {"who": client_name(context), **arguments}
        reply: Reply | ErrorReply
        try:
            call = tool.read(arguments, beside=beside)
            async with connect() as operations:
                reply = await tool.answer(operations, call)
        except (SeptetError, OSError) as error:
            reply = error_reply(error)
        if isinstance(reply, TaskReply) and becomes_task(request.name, context):
            return created_task(reply)
        return tool_result(reply)

    server: Server[Any] = Server(
        "septet", title="Septet", version=version("septet"), instructions=_INSTRUCTIONS, on_list_tools=list_tools
    )
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    TaskMethods(connect, server).register()
    return server


async def serve_stdio(context: OperationsContext) -> None:
    """Serve MCP over stdin and stdout until stdin ends; all other output of this process goes to stderr."""
    server = mcp_server(context, beside=True)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
