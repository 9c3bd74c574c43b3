"""The checks of `septet doctor` on workers and on the builds that receive work orders."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from fcntl import LOCK_EX
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from clients.cli.doctor.machine_checks import Check
from clients.executions.messages import START_WORKER
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.contracts.names import Status
from septet.contracts.task import TaskError
from septet.errors import SeptetError
from septet.state import StateDir
from septet.system.locks import lock_is_held
from septet.system.text import name_some
from workers.builds.deployment import UNVERSIONED, Deployment, Routing
from workers.builds.promotion import builds_with_workers

_NAME: Final = "workers"
_NAMED: Final = 5
_WITHIN_SECONDS: Final = 5.0


async def workers_check(client: Client, task_queue: str) -> Check:
    """Check that the builds that receive work orders have workers, as the server lists them."""
    deployment = Deployment(client, task_queue)
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            routing = await deployment.routing()
            builds = await builds_with_workers(deployment)
    except (RPCError, TimeoutError) as error:
        why = error.message if isinstance(error, RPCError) else f"it took longer than {_WITHIN_SECONDS:.0f} s"
        remedy = "Run `septet doctor` again when the server answers, with a key that may describe task queues."
        return Check(_NAME, "warning", f"The server does not list its workers: {why}.", remedy)
    return builds_check(task_queue, routing, builds)


def own_worker_check(state: StateDir) -> Check:
    """Return a check that reports whether a worker of this state directory runs."""
    runs = lock_is_held(state.worker_lock, LOCK_EX)
    return Check("worker here", "ok", f"{'A' if runs else 'No'} worker runs with {state.root}.")


async def host_checks(client: Client, task_queue: str) -> list[Check]:
    """Return a warning for each host that does not answer, with the work orders that wait for it."""
    waits: dict[TaskError, list[str]] = {}
    try:
        waiting = await WorkOrders(client, task_queue).list(OrderFilter(status=Status.WAITING, is_open=True))
    except SeptetError:  # without a list no host can be reported
        return []
    for task in waiting.tasks:
        if task.error is not None and task.host_wait:
            waits.setdefault(task.error, []).append(task.id)
    return [
        Check("host", "warning", f"{error.message} Waiting: {name_some(ids, _NAMED)}.", error.remedy)
        for error, ids in waits.items()
    ]


def builds_check(task_queue: str, routing: Routing, builds: Mapping[str, timedelta]) -> Check:
    """Return a check that the builds that receive work orders have workers.

    Args:
        task_queue: The queue of work orders.
        routing: The builds that receive work orders.
        builds: The builds with workers, and the time since a worker of each last polled.
    """
    if not builds:
        remedy = f"{START_WORKER}, or set SEPTET_TASK_QUEUE to the queue of your workers."
        return Check(_NAME, "warning", f"No worker takes work orders from queue {task_queue!r}.", remedy)
    if routing.current not in builds:
        return _current_without_worker(routing.current, builds)
    ramping = routing.ramping
    if ramping != UNVERSIONED and routing.percentage and ramping not in builds:
        message = (
            f"Build {ramping} gets {routing.percentage:g} % of the work orders and has no worker: these wait. "
            f"{_with_workers(builds)}"
        )
        return Check(_NAME, "warning", message, f"`septet promote --ramp 0`, or start a worker of {ramping}.")
    asked = f"asked for work {max(builds[routing.current].total_seconds(), 0):.0f} s ago"
    if routing.current == UNVERSIONED:
        return Check(_NAME, "ok", f"Workers without a build take the work orders; one {asked}.")
    others = ", ".join(sorted(builds.keys() - {routing.current, UNVERSIONED}))
    message = f"The current build {routing.current} has a worker, which {asked}."
    return Check(_NAME, "ok", f"{message} Other builds with workers: {others}." if others else message)


def _current_without_worker(current: str, builds: Mapping[str, timedelta]) -> Check:
    named = sorted(builds.keys() - {UNVERSIONED})
    promotion = f"`septet promote {named[0]}`" if len(named) == 1 else "`septet promote BUILD` with one of these"
    if current == UNVERSIONED:
        message = f"No build is current, and each worker has one: work orders wait. {_with_workers(builds)}"
        return Check(_NAME, "warning", message, f"{promotion}.")
    message = f"The current build {current} has no worker: work orders wait. {_with_workers(builds)}"
    remedy = f"{promotion}, or start a worker of {current}."
    if not named:
        remedy = f"Start a worker of {current}: workers with SEPTET_VERSIONING=off get no work orders."
    return Check(_NAME, "warning", message, remedy)


def _with_workers(builds: Mapping[str, timedelta]) -> str:
    named = ", ".join(sorted(builds.keys() - {UNVERSIONED}))
    return f"Builds with workers: {named}." if named else "Only workers without a build are there."
