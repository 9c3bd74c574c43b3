"""`septet mcp`: work orders as tools of an agent, on stdin and stdout."""

import signal

from clients.cli.reply import Reply, reply
from clients.connection import Connection
from clients.mcp.over_stdio import serve_stdio
from septet.settings import load_settings
from workers.logs import set_up_logs


def mcp(*, address: str | None) -> None:
    """Serve until stdin ends; a server that is not reached is told by the tools."""

    async def work() -> Reply:
        settings = load_settings()
        set_up_logs(settings)
        await serve_stdio(Connection(settings, address).operations)
        return Reply()

    # Nothing is held that an end could hurt, and Python's own way would wait for a line on stdin first.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    reply(work, as_json=False)
