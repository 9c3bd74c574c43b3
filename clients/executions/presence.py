"""Find out whether a worker runs for a queue; if none runs, return a notice with a remedy."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from fcntl import LOCK_EX
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from septet.state import StateDir
from septet.system.durable import lock_is_held
from workers.builds.deployment import Deployment, ListedWorker
from workers.builds.promotion import SILENT, builds_with_workers, opens_workspaces
from workers.server.server_file import read_server_file

_LATE: Final = 1.5
"""After this many intervals without a heartbeat, a notice says when the worker was last heard."""


async def why_nobody_works(client: Client, task_queue: str, state: StateDir) -> str:
    """Return a notice, with its remedy, if no worker runs for a queue; else an empty text.

    A worker of this state directory holds a lock while it runs; other workers send heartbeats to the server. If
    the server does not report workers, the result is an empty text.
    """
    runs_here = await asyncio.to_thread(lock_is_held, state.worker_lock, LOCK_EX)
    own = f"septet@{state.host_id()}" if state.root.is_dir() and not runs_here else ""
    deployment = Deployment(client, task_queue)
    try:
        listed, now = await deployment.workers(), datetime.now(UTC)
        theirs = [each for each in listed if each.identity != own]
        nobody = _silence([each for each in theirs if not each.is_gone(now)] or theirs, now)
        if runs_here and all(each.is_stopping for each in theirs):
            nobody = await asyncio.to_thread(_serves_another, task_queue, state)
        elif nobody:
            server = await asyncio.to_thread(read_server_file, state)
            is_own = server is not None and server.address == client.service_client.config.target_host
            nobody = f"{nobody} Start one: septet {'up' if is_own else 'worker'}"
        signs = (each.last_sign_at for each in theirs)
        if nobody and not await _polls_since(client, task_queue, max((now - SILENT, *signs)), own):
            return nobody
        return await _without_build(deployment)
    except RPCError:
        return ""


async def why_nobody_works_on(client: Client, row: WorkflowExecutionDescription, state: StateDir) -> str:
    """Return a notice, with its remedy, if no worker runs for an open workflow; else an empty text."""
    if row.status is not WorkflowExecutionStatus.RUNNING:
        return ""
    nobody = await why_nobody_works(client, row.task_queue, state)
    is_asked_for = row.raw_description.workflow_extended_info.cancel_requested
    if nobody and is_asked_for:
        return f"The cancel is asked for, and is carried out as soon as a worker runs. {nobody}"
    return nobody


async def why_nothing_opens(client: Client, task_queue: str) -> str:
    """Return a notice if all hosts of a queue refuse new work (`SEPTET_DRAIN`); else an empty text."""
    try:
        if await opens_workspaces(Deployment(client, task_queue)):
            return ""
    except RPCError:
        return ""
    return "Every host is drained: new work waits until a worker of this queue runs without SEPTET_DRAIN."


async def _without_build(deployment: Deployment) -> str:
    """Return a notice if workers run, but no build that receives work orders has a worker; else an empty text."""
    routing, builds = await asyncio.gather(deployment.routing(), builds_with_workers(deployment))
    if not builds or routing.current in builds or (routing.ramping and routing.ramping in builds):
        return ""
    current = f"the current build {routing.current} has no worker" if routing.current else "no build is current"
    named = ", ".join(sorted(filter(None, builds))) or "none"
    return f"Nobody works: {current}. Builds with workers: {named}. Choose one: septet promote BUILD"


def _serves_another(task_queue: str, state: StateDir) -> str:
    """Return a notice if this state directory's worker serves another queue; else an empty text."""
    try:
        served = json.loads(state.health_file.read_text(encoding="utf-8")).get("task_queue", task_queue)
    except (OSError, ValueError):
        return ""
    if served == task_queue:
        return ""
    remedy = f"Start another with SEPTET_TASK_QUEUE={task_queue}: septet worker"
    return f"Nobody works: the worker of {state.root} serves queue {served!r}, not {task_queue!r}. {remedy}"


def _silence(workers: Sequence[ListedWorker], now: datetime) -> str:
    """Return a notice if no worker runs or if the last heartbeat is late; else an empty text."""
    last = max(workers, key=lambda each: each.heard_at, default=None)
    if last is None or last.is_stopping:
        return "No worker runs, so no further step begins."
    age = now - last.heard_at
    if last.is_silent(now):
        return f"Nobody works: the last worker was heard {age.total_seconds():.0f} s ago."
    return f"The worker was last heard {age.total_seconds():.0f} s ago." if age > _LATE * last.interval else ""


async def _polls_since(client: Client, task_queue: str, since: datetime, but: str = "") -> bool:
    """Return whether a worker other than `but` has polled the queue since `since`, by the server's clock."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    polls = (poll for poll in answer.pollers if poll.identity != but)
    return any(poll.last_access_time.ToDatetime(UTC) > since for poll in polls)
