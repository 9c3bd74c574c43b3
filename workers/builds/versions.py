"""The versioning of a worker: work orders move between builds, and the queues of hosts have no version."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from septet.settings import Settings
from workers.beside import beside
from workers.builds.build_id import build_id, own_patches
from workers.builds.deployment import UNVERSIONED, Deployment
from workers.server.preflight import PreflightError

_SEEN_WITHIN_SECONDS: Final = 30.0
_TRIES: Final = 5
"""The most tries to make this worker's build the first current one, while other workers try the same."""

_log = structlog.get_logger()


def deployment_config(settings: Settings) -> WorkerDeploymentConfig | None:
    """Return the versioning options of the worker for work orders; `None` if versioning is off.

    A running work order moves to the current build at its next workflow task, because the work order may last for
    days, and a host mostly runs only one build.
    """
    if not settings.versioning:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=settings.task_queue, build_id=build_id(settings)),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )


@asynccontextmanager
async def announcing_build(client: Client, settings: Settings, *, sole: bool) -> AsyncIterator[None]:
    """Make this worker's build current in two cases; report the build's patches while the block runs.

    The worker must poll already. The cases are: the deployment never had a current build; or the worker is the
    `sole` worker of an embedded server. In all other cases, only `septet promote` moves work orders to a build.

    Raises:
        PreflightError: The server refused.
    """
    own = build_id(settings) if settings.versioning else UNVERSIONED
    deployment = Deployment(client, settings.task_queue)
    try:
        if sole:
            before = (await deployment.routing()).current
            if before != own:
                await deployment.make_current(own, unseen=True)
                _log.info("build_made_current", build=own or "unversioned", before=before or "unversioned")
        elif settings.versioning:
            await _until_seen(deployment, own)
            await _become_first(deployment, own)
        routing = await deployment.routing()
        if own not in {routing.current, routing.ramping}:
            current = routing.current or "unversioned"
            remedy = _command(deployment, own)
            _log.warning("build_not_current", build=own or "unversioned", current=current, remedy=remedy)
    except RPCError as error:
        raise PreflightError(
            f"The server did not let build {own or 'unversioned'} serve {deployment.name!r}: {error.message}.",
            remedy=f"Ask an administrator to run: {_command(deployment, own)}. Or set SEPTET_VERSIONING=off.",
        ) from error
    async with beside(_tell_patches(deployment, own)):
        yield


async def _become_first(deployment: Deployment, own: str) -> None:
    """Make this build current if no build was ever current; if several workers try, only one succeeds."""
    for _ in range(_TRIES):
        routing = await deployment.routing()
        if routing.is_decided or routing.ramping:
            return
        try:
            await deployment.make_current(own, routing.token)
        except RPCError as error:
            if error.status is RPCStatusCode.PERMISSION_DENIED:
                return  # workers may not decide there; `septet promote` finds this build
            if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                raise
        else:
            _log.info("build_made_current", build=own, before="none")
            return


async def _tell_patches(deployment: Deployment, own: str) -> None:
    if own == UNVERSIONED:
        return
    try:
        await _until_seen(deployment, own)
        await deployment.tell_patches(own, await asyncio.to_thread(own_patches))
    except (RPCError, PreflightError, ValueError) as error:
        _log.warning("patches_not_told", build=own, error=str(error))


async def _until_seen(deployment: Deployment, build: str) -> None:
    try:
        async with asyncio.timeout(_SEEN_WITHIN_SECONDS):
            while not await deployment.has(build):  # noqa: ASYNC110 -- it is the server's event
                await asyncio.sleep(0.2)
    except TimeoutError:
        message = (
            f"The server did not notice build {build} of {deployment.name!r} for {_SEEN_WITHIN_SECONDS:.0f} s."
        )
        raise PreflightError(message, remedy="Restart this worker, or set SEPTET_VERSIONING=off.") from None


def _command(deployment: Deployment, build: str) -> str:
    if build != UNVERSIONED:
        return f"septet promote {build}"
    return (
        f"temporal worker deployment set-current-version --namespace {deployment.client.namespace} "
        f"--deployment-name {deployment.name} --unversioned --yes"
    )
