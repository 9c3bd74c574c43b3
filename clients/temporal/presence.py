"""Whether anybody works on what is queued: what every face says where nobody does, and which command helps."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    ListWorkersRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from septet.state import StateDir
from septet.system.locks import lock_is_held
from workers.deployment import Deployment
from workers.promotion import builds_with_workers
from workers.server_file import read_server_file

_LEAST_INTERVAL: Final = timedelta(seconds=10)
"""Between two heartbeats of a worker."""
_FIRST_INTERVAL: Final = timedelta(seconds=60)
"""As much at the most until a worker sends the second one."""
_LATE: Final = 1.5
_SILENT: Final = 2
"""So many intervals."""
_POLLS_WITHIN: Final = timedelta(seconds=90)
"""A worker asks for work at least once a minute, also before its first heartbeat is listed."""


async def why_nobody_works(client: Client, task_queue: str, state: StateDir) -> str:
    """Return that nobody works on a queue, and the command that helps; empty where somebody does.

    A worker of this state directory is known to be gone at once, by its lock; others are when two heartbeats have
    not come. What the server does not tell counts for a worker.
    """
    own = "" if await asyncio.to_thread(lock_is_held, state.worker_lock, LOCK_EX) else f"septet@{state.host_id()}"
    try:
        listed = await client.workflow_service.list_workers(
            ListWorkersRequest(namespace=client.namespace, query=f'TaskQueue="{task_queue}"')
        )
        workers = [each.worker_heartbeat for each in listed.workers_info]
        workers = [each for each in workers if each.worker_identity != own]
        if not workers:
            someone = not own or await _polls_since(client, task_queue, datetime.now(UTC) - _POLLS_WITHIN, own)
            return "" if someone else f"Nobody works: no worker runs. {await _help(client, state)}"
        now = datetime.now(UTC)
        silent = _silence(workers, now)
        if silent and not await _polls_since(client, task_queue, _last_expected(workers)):
            return f"{silent} {await _help(client, state)}"
        deployment = Deployment(client, task_queue)
        routing, builds = await asyncio.gather(
            deployment.routing(), builds_with_workers(deployment, _POLLS_WITHIN)
        )
    except RPCError:
        return ""
    if not builds or routing.current in builds or (routing.ramping and routing.ramping in builds):
        return ""
    current = f"the current build {routing.current} has no worker" if routing.current else "no build is current"
    named = ", ".join(sorted(filter(None, builds))) or "none"
    return f"Nobody works: {current}. Builds with workers: {named}. Choose one: septet promote BUILD"


def _silence(workers: Sequence[WorkerHeartbeat], now: datetime) -> str:
    """Return for how long all workers have been silent; empty where one of them is heard."""
    last = min(workers, key=lambda each: _age(each, now))
    seconds = round(_age(last, now).total_seconds())
    if _is_silent(last, now):
        return f"Nobody works: the last worker was heard {seconds} s ago."
    return f"The worker was last heard {seconds} s ago." if _age(last, now) > _LATE * _interval(last) else ""


def _is_silent(worker: WorkerHeartbeat, now: datetime) -> bool:
    return _age(worker, now) > _SILENT * _interval(worker)


def _age(worker: WorkerHeartbeat, now: datetime) -> timedelta:
    return now - worker.heartbeat_time.ToDatetime(UTC)


def _interval(worker: WorkerHeartbeat) -> timedelta:
    return max(worker.elapsed_since_last_heartbeat.ToTimedelta() or _FIRST_INTERVAL, _LEAST_INTERVAL)


def _last_expected(workers: Sequence[WorkerHeartbeat]) -> datetime:
    """Return when the next heartbeat should have come: who asks for work after that is a new worker."""
    return max(each.heartbeat_time.ToDatetime(UTC) + _interval(each) for each in workers)


async def _polls_since(client: Client, task_queue: str, since: datetime, but: str = "") -> bool:
    """Say whether a worker, other than one, has asked for work since a moment of the server's clock."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    polls = (poll for poll in answer.pollers if poll.identity != but)
    return any(poll.last_access_time.ToDatetime(UTC) > since for poll in polls)


async def _help(client: Client, state: StateDir) -> str:
    """Return the command that starts a worker: `septet up` where the server is this state directory's own."""
    server = await asyncio.to_thread(read_server_file, state)
    is_own = server is not None and server.address == client.service_client.config.target_host
    return f"Start one: septet {'up' if is_own else 'worker'}"
