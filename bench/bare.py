"""A bare workflow for comparison: seven activities that each start `/bin/true`.

`python -m bench.bare ADDRESS` is its worker; it prints a line when it is ready and ends with SIGTERM.
"""

import asyncio
import signal
import sys
import time
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from septet.system.own_process import end_process
from workers.connection.plugin import SeptetPlugin

QUEUE = "bench-bare"
STEPS = 7

Moments = tuple[float, float]
"""The start and the end of `/bin/true`, in seconds of the wall clock."""


@activity.defn(name="start_true")
async def start_true() -> Moments:
    """Start `/bin/true` and wait for its end."""
    started = time.time()
    process = await asyncio.create_subprocess_exec("/bin/true")
    await process.wait()
    return started, time.time()


@workflow.defn(name="Bare")
class Bare:
    """Runs seven activities, one after the other."""

    @workflow.run
    async def run(self) -> list[Moments]:
        """Return the start and end of each activity."""
        limit = timedelta(seconds=30)
        return [await workflow.execute_activity(start_true, start_to_close_timeout=limit) for _ in range(STEPS)]


async def serve(address: str) -> None:
    """Serve bare workflows until SIGTERM."""
    client = await Client.connect(address, plugins=[SeptetPlugin()])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Worker(client, task_queue=QUEUE, workflows=[Bare], activities=[start_true]):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
    end_process(0)
