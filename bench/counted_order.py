"""The counted work: a work order, and its follow-up."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench.stage import SEPTET, Stage, program
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status, watch_id
from septet.contracts.order import WorkOrderInput
from septet.forges.choose import forge_for
from septet.forges.local.forge import LocalForge
from septet.forges.values import pull_request_number
from septet.git.engine.address import parse_address

_TOLD_WITHIN_SECONDS: Final = 60.0


async def carry_out(on: Stage, origin: Path, order_id: str) -> None:
    """Run a work order, without polls of its progress."""
    orders = WorkOrders(on.client)
    order = WorkOrderInput(repository=str(origin), title="Tell that it is done", agent="scripted")
    await orders.put(order, order_id)
    task = await orders.wait(order_id)
    if task.status is not Status.COMPLETED:
        raise RuntimeError(f"{order_id} is {task.status.value}: {task.error}")


async def carry_out_and_tell(on: Stage, origin: Path, order_id: str, received: threading.Event) -> None:
    """Run a work order, and wait until its notification has arrived."""
    received.clear()
    await carry_out(on, origin, order_id)
    if not await asyncio.to_thread(received.wait, _TOLD_WITHIN_SECONDS):
        raise TimeoutError(f"Nobody was told of {order_id}.")


async def merge(on: Stage, origin: Path, order_id: str) -> None:
    """Merge a work order's pull request, and wait until its watch has ended."""
    forge = forge_for(parse_address(str(origin), home=Path.home()), on.settings)
    task = await WorkOrders(on.client).get(order_id)
    if not isinstance(forge, LocalForge) or task.pr_url is None:
        raise TypeError(f"{order_id} has no pull request on a local forge.")
    await asyncio.to_thread(forge.merge_pull_request, pull_request_number(task.pr_url))
    await on.client.get_workflow_handle(watch_id(order_id)).result()


@asynccontextmanager
async def watching(on: Stage, order_id: str) -> AsyncIterator[None]:
    """Watch a work order during the block, from the watch's first line on."""
    async with program([str(SEPTET), "watch", order_id, "--json"], on.environ):
        yield
