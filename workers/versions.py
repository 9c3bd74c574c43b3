"""Which build of the workflows gets work orders: their queue is versioned, the queues of hosts are not."""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path
from typing import Final

import structlog
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

import workflows
from septet.settings import Settings
from workers.preflight import PreflightError

_HASH_LENGTH: Final = 8
_UNVERSIONED: Final = ""
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")

_log = structlog.get_logger()


def build_id(settings: Settings) -> str:
    """Return what this build is called: `SEPTET_BUILD_ID`, else the release and a hash of its workflows."""
    if settings.build_id is not None:
        return settings.build_id
    folder = Path(next(iter(workflows.__path__)))
    code = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return f"{version('septet')}-{hashlib.sha256(code).hexdigest()[:_HASH_LENGTH]}"


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
        raise _refused(error, client, settings.task_queue, own) from error
    remedy = _by_hand(client, settings.task_queue, own)
    _log.warning("build_not_current", build=own or "unversioned", current=current, remedy=remedy)


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


def _refused(error: RPCError, client: Client, deployment: str, build: str) -> PreflightError:
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
