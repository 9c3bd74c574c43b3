"""Operations on a server that nobody runs: each call of it is refused at once."""

from pathlib import Path

from fakes.septet_command import free_port
from temporalio.client import Client, RetryConfig

from clients.operations import Operations
from clients.work_orders import WorkOrders
from septet.state import StateDir


async def unreached(state: Path) -> Operations:
    """Return operations whose client has a port of its own that nobody listens on."""
    once = RetryConfig(max_retries=0, max_elapsed_time_millis=1000)
    client = await Client.connect(f"127.0.0.1:{free_port()}", lazy=True, retry_config=once)
    return Operations(WorkOrders(client), StateDir(state), {})
