"""A worker that is busy with remotes that hang still serves work orders that need no such remote."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.repositories import make_origin
from fakes.step_lab import settings_of
from fakes.waiting import wait_until
from pydantic import SecretStr
from temporalio.client import Client

from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.forges.http.pauses import PAUSES
from septet.settings import Settings
from workers.connection.connection import connect
from workers.connection.plugin import serving_options
from workers.worker import running_worker

pytestmark = pytest.mark.asyncio(loop_scope="session")

HANGING = 40
"""More than the default number of threads of Python's event loop on a small machine."""


@dataclass
class SilentRemote:
    """A server on loopback that accepts connections and never answers."""

    port: int = 0
    connections: list[asyncio.StreamWriter] = field(default_factory=list)

    def url(self, repository: str) -> str:
        return f"http://127.0.0.1:{self.port}/o/{repository}"


@asynccontextmanager
async def silent_remote() -> AsyncIterator[SilentRemote]:
    """Run the silent remote while the block lasts."""
    remote = SilentRemote()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        remote.connections.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    remote.port = server.sockets[0].getsockname()[1]
    try:
        yield remote
    finally:
        server.close()
        for writer in remote.connections:
            writer.close()


def busy_settings(root: Path, remote: SilentRemote) -> Settings:
    """Return settings of a worker that takes the silent remote for a forge."""
    own = {
        "task_queue": f"busy-{uuid.uuid4().hex[:8]}",
        "github_hosts": (f"127.0.0.1:{remote.port}",),
        "github_token": SecretStr("a-key"),
        "max_agents": 2,
        "log_level": "error",
    }
    return settings_of(root).model_copy(update=own)


@pytest.mark.timeout(300)
async def test_work_orders_that_hang_on_a_remote_hold_nobody_up(client: Client, tmp_path: Path) -> None:
    """While forty work orders have a silent remote, the host answers probes, completes others and takes cancels."""
    async with AsyncExitStack() as stack:
        remote = await stack.enter_async_context(silent_remote())
        settings = busy_settings(tmp_path, remote)
        own = await connect(settings, address=client.service_client.config.target_host, options=serving_options)
        parts = await stack.enter_async_context(running_worker(own, settings, sole=True))
        orders = WorkOrders(own, settings.task_queue)

        async def start(order_id: str, repository: str) -> str:
            given = WorkOrderInput(repository=repository, title="Tell that it is done", agent="scripted")
            await orders.start(given, order_id)
            return order_id

        mark = uuid.uuid4().hex[:6]
        hanging = [await start(f"{mark}-hangs-{each}", remote.url(f"r{each}")) for each in range(HANGING)]
        waiting = await start(f"{mark}-waits", remote.url("r0"))
        try:
            await wait_until(lambda: len(remote.connections) >= HANGING, seconds=60)
            origin = make_origin(tmp_path / "origins")
            origin.push({"README.md": "# Sample\n"})

            beside = await start(f"{mark}-beside", str(origin.bare))
            task = await asyncio.wait_for(orders.wait(beside), 60)
            assert task.status is Status.COMPLETED, task.error

            assert PAUSES.fleet is not None
            assert PAUSES.folder == parts.host.state.forge_pauses
            probe = parts.control["probe_host"]
            assert await asyncio.wait_for(probe(), 30) == parts.host.id
            cancelled = (waiting, hanging[0])
            await asyncio.wait_for(asyncio.gather(*map(orders.cancel_and_wait, cancelled)), 60)
            for order_id in cancelled:
                assert (await asyncio.wait_for(orders.wait(order_id), 30)).status is Status.CANCELLED
        finally:
            for order_id in hanging[1:]:
                await client.get_workflow_handle(order_id).terminate()
