"""The server on stdin and stdout, for an agent that starts it."""

from mcp.server.stdio import stdio_server

from clients.connection import OperationsContext
from clients.mcp.server import mcp_server


async def serve_stdio(context: OperationsContext) -> None:
    """Serve until stdin ends. What anything else prints meanwhile goes to stderr."""
    server = mcp_server(context, beside=True)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
