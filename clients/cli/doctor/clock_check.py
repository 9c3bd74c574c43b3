"""The clock check of `septet doctor`: work orders use the server's clock, limits use the host's clock."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from clients.cli.doctor.machine_checks import Check
from workers.builds.deployment import Deployment

_QUEUE: Final = "septet-clock"
"""The name of a queue without tasks."""
_WITHIN_SECONDS: Final = 3.0
_POLL: Final = timedelta(seconds=5)
_LOOK_SECONDS: Final = 0.05
_OFF: Final = timedelta(seconds=2)


def _now() -> datetime:
    return datetime.now(UTC)


async def clock_checks(client: Client, now: Callable[[], datetime] = _now) -> list[Check]:
    """Compare this machine's clock with the server's; return no check if the server does not report its time.

    The server reports the time of a queue's last poll, so this function polls an unused queue.
    """
    queue = Deployment(client, _QUEUE)
    poll = PollWorkflowTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=_QUEUE), identity=client.identity
    )
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            before = await queue.last_polls()
            asked_at = now()
            asking = asyncio.ensure_future(client.workflow_service.poll_workflow_task_queue(poll, timeout=_POLL))
            try:
                while (polls := await queue.last_polls()) == before:  # noqa: ASYNC110 -- the server sends no event
                    await asyncio.sleep(_LOOK_SECONDS)
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            seen_at, told = now(), max(polls.values())
    except (RPCError, TimeoutError):
        return []
    off, which = max((asked_at - told, "ahead of"), (told - seen_at, "behind"))
    if off < _OFF:
        return [Check("clock", "ok", "This machine's clock and the server's agree.")]
    message = f"This machine's clock is {off.total_seconds():.0f} s {which} the server's."
    return [Check("clock", "warning", message, "Have both set by NTP: `timedatectl set-ntp true`.")]
