"""Which build of the workflows gets work orders: their queue is versioned, the queues of hosts are not."""

import asyncio
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Final

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from septet.settings import Settings
from workers.beside import beside
from workers.build_id import build_id
from workers.preflight import PreflightError

_UNVERSIONED: Final = ""
_LOOK_SECONDS: Final = 30.0
_SILENT_SECONDS: Final = 150.0
"""A worker asks for work at least once a minute; the server remembers it for five."""
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")

_log = structlog.get_logger()


def deployment_config(settings: Settings) -> WorkerDeploymentConfig | None:
    """Return the versioning of the worker of work orders; `None` where it is off.

    Work orders may wait for days, and a host mostly runs one build: so they move over to the current one at their
    next decision, which replays under it.
    """
    if not settings.versioning:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=settings.task_queue, build_id=build_id(settings)),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


async def take_work_orders(client: Client, settings: Settings, *, sole: bool) -> None:
    """Make this build the one that gets work orders, where that is nobody else's decision.

    It is where no build is current, where this one's release is not earlier than the current one's, and for the
    `sole` worker of an embedded server. It is not where `SEPTET_BUILD_ID` names it, or it has no version: then a
    warning names the current build, and the command that changes it.

    Raises:
        PreflightError: The server refused.
    """
    own = build_id(settings) if settings.versioning else _UNVERSIONED
    try:
        current = await _current(client, settings.task_queue)
        if current == own:
            return
        unnamed = settings.versioning and settings.build_id is None
        if sole or current == _UNVERSIONED or (unnamed and not _earlier(own, current)):
            await _make_current(client, settings.task_queue, own)
            _log.info("build_made_current", build=own or "unversioned", before=current or "unversioned")
            return
    except RPCError as error:
        raise _refusal(error, client, settings.task_queue, own) from error
    remedy = _by_hand(client, settings.task_queue, own)
    _log.warning("build_not_current", build=own or "unversioned", current=current, remedy=remedy)


@asynccontextmanager
async def taking_work_orders(client: Client, settings: Settings, *, sole: bool) -> AsyncIterator[None]:
    """Take work orders, and for as long as the block lasts also those of a build whose workers are all gone.

    Raises:
        PreflightError: The server refused.
    """
    await take_work_orders(client, settings, sole=sole)

    async def look() -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await take_what_nobody_serves(client, settings)
            except RPCError as error:
                _log.info("builds_not_looked_at", error=error.message)

    async with beside(look()):
        yield


async def take_what_nobody_serves(
    client: Client, settings: Settings, *, silent_seconds: float = _SILENT_SECONDS
) -> bool:
    """Make this build current where no worker of the current one is left, and say whether that was so.

    Work orders of a later release wait for it all the same, and where `SEPTET_BUILD_ID` names builds, or this one
    has no version, for a person.

    Args:
        client: The server.
        settings: This worker's settings.
        silent_seconds: A worker that has not asked for work for so long is gone.

    Raises:
        RPCError: The server refused.
    """
    if not settings.versioning or settings.build_id is not None:
        return False
    own, current = build_id(settings), await _current(client, settings.task_queue)
    if current in {own, _UNVERSIONED} or _earlier(own, current):
        return False
    if await _silence(client, settings.task_queue, current) < silent_seconds:
        return False
    await _make_current(client, settings.task_queue, own)
    _log.warning("build_made_current", build=own, before=current, why="no worker of that one is left")
    return True


async def _silence(client: Client, task_queue: str, build: str) -> float:
    """Return for how many seconds no worker of a build has asked for work orders while others have.

    That is by the server's clock alone: this host's may be another.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    pollers = (await client.workflow_service.describe_task_queue(request)).pollers
    asked_at = {poller.deployment_options.build_id: 0.0 for poller in pollers}
    for poller in pollers:
        of = poller.deployment_options.build_id
        asked_at[of] = max(asked_at[of], poller.last_access_time.ToDatetime(UTC).timestamp())
    return max(asked_at.values()) - asked_at[build] if build in asked_at else math.inf


async def _current(client: Client, deployment: str) -> str:
    """Return the build that gets new work orders; the empty string when that is a worker without a version."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment)
    try:
        answer = await client.workflow_service.describe_worker_deployment(request)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.UNIMPLEMENTED):
            return _UNVERSIONED
        raise
    return answer.worker_deployment_info.routing_config.current_deployment_version.build_id


async def _make_current(client: Client, deployment: str, build: str) -> None:
    """Name a build that has begun to ask for work; the server may not have noticed it yet."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace,
        deployment_name=deployment,
        build_id=build,
        identity=client.identity,
        ignore_missing_task_queues=True,
        allow_no_pollers=True,
    )
    await client.workflow_service.set_worker_deployment_current_version(request)


def _earlier(build: str, than: str) -> bool:
    """Say whether a build is of an earlier release; one that does not begin with a release cannot be compared."""
    one, other = _RELEASE.match(build), _RELEASE.match(than)
    if one is None or other is None:
        return False
    return tuple(map(int, one.groups())) < tuple(map(int, other.groups()))


def _refusal(error: RPCError, client: Client, deployment: str, build: str) -> PreflightError:
    return PreflightError(
        f"The server did not let build {build or 'unversioned'} serve {deployment!r}: {error.message}.",
        remedy=f"Have someone run: {_by_hand(client, deployment, build)}. Or set SEPTET_VERSIONING=off.",
    )


def _by_hand(client: Client, deployment: str, build: str) -> str:
    which = f"--build-id {build}" if build else "--unversioned"
    return (
        f"temporal worker deployment set-current-version --namespace {client.namespace} "
        f"--deployment-name {deployment} {which} --allow-no-pollers --yes"
    )
