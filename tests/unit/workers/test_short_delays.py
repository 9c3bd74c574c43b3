"""Short delays on Septet's servers: a free host should not wait a second for work of a full host."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from fakes.septet_command import free_ports
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect
from workers.server.ports import Ports
from workers.server.server import embedded_server

QUEUE = "passes"
PASSES = 20


async def test_what_is_to_be_tried_again_soon_does_not_wait_for_a_second(tmp_path: Path) -> None:
    """Twenty retries with a delay of 50 ms end in less than 15 seconds."""

    @activity.defn(name="pass_on")
    async def pass_on() -> int:
        if activity.info().attempt <= PASSES:
            raise ApplicationError("full", next_retry_delay=timedelta(milliseconds=50))
        return activity.info().attempt

    state = StateDir(tmp_path / "state")
    async with embedded_server(state, Ports(*free_ports(2)), {"PATH": os.environ["PATH"]}):
        client = await connect(Settings(state_dir=state.root, environ={}))
        async with Worker(client, task_queue=QUEUE, activities=[pass_on]), asyncio.timeout(0.75 * PASSES):
            attempts = await client.execute_activity(
                pass_on, id="passed", task_queue=QUEUE, start_to_close_timeout=timedelta(minutes=1)
            )
    assert attempts == PASSES + 1
