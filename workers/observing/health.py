"""The time of this worker's last poll, in a file that a container's health check reads."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from activities.host.host import Host
from septet.system.durable import write_atomically
from workers.beside import beside, repeat

LOOK_SECONDS: Final = 5.0
"""The seconds between writes of the file; `docker/health.py` counts a worker as cut off from the server if the
file is several times as old."""


@asynccontextmanager
async def reporting_health(client: Client, host: Host) -> AsyncIterator[None]:
    """Keep the file current during the block, and remove the file afterwards; this costs no Action.

    This first removes the file that a killed worker may have left.
    """
    host.state.health_file.unlink(missing_ok=True)
    async with (
        beside(repeat(partial(_report, client, host), lambda: LOOK_SECONDS, "health_not_known")),
        beside(repeat(partial(_give_sign, host), lambda: LOOK_SECONDS, "no_sign_of_life_given")),
    ):
        yield
    host.state.health_file.unlink(missing_ok=True)


async def _give_sign(host: Host) -> None:
    """Set the file's time to now, whether or not the server answers: the process is alive."""
    with suppress(FileNotFoundError):  # the server has not seen this worker yet
        await asyncio.to_thread(os.utime, host.state.health_file)


async def _report(client: Client, host: Host) -> None:
    """Write the time of this worker's last poll; if the server does not list the worker, keep the file.

    Raises:
        RPCError: The server refused, or was not reached.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=host.settings.task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    polls = [each.last_access_time.ToDatetime(UTC) for each in answer.pollers if each.identity == client.identity]
    if polls:
        content = {
            "polled_at": max(polls).isoformat(),
            "looked_at": datetime.now(UTC).isoformat(),
            "task_queue": host.settings.task_queue,
        }
        await asyncio.to_thread(write_atomically, host.state.health_file, json.dumps(content).encode())
