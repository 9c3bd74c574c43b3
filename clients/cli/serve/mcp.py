"""`septet mcp`: serve agents the MCP tools over stdin and stdout."""

import signal

from clients.cli.serve.options import McpOptions
from clients.cli.terminal.reply import CommandReply
from clients.cli.terminal.serving import hide_login_keys
from clients.mcp.server import serve_stdio
from clients.operations.operations import Connection
from septet.settings import load_settings
from workers.observing.logs import set_up_logs


async def mcp(options: McpOptions) -> CommandReply:
    """Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol)."""
    # An abrupt end hurts nothing here, and Python's own way would first wait for a line on stdin.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = load_settings()
    set_up_logs(settings)
    hide_login_keys(settings)
    await serve_stdio(Connection(settings, options.address).operations)
    return CommandReply()
