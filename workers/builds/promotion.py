"""Promote a build, so that it gets all or a percentage of the work orders."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from septet.errors import NotFoundError, RefusedTransitionError, ServerNotReachedError, UsageError
from septet.settings import Settings
from workers.builds.build_id import build_id, own_patches
from workers.builds.deployment import OPENINGS, UNVERSIONED, Deployment, ListedWorker, Routing

SILENT: Final = timedelta(seconds=90)
"""The time without a poll after which a build counts as without workers. A worker polls at least once a minute,
and clocks may differ by half a minute."""
_TOLD_WITHIN_SECONDS: Final = 10.0
"""The longest time until a starting worker has reported its build's patches."""
_LOOK_SECONDS: Final = 0.5
_NAMED: Final = 3
"""The most work orders that a message names."""
_PATCHES: Final = SearchAttributeKey.for_keyword_list("TemporalChangeVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionCall:
    """A request to promote a build."""

    build: str | None = None
    """The build; by default the build of this installation."""
    ramp: float | None = None
    """The percentage of work orders for the build; all by default. With 0, the current build gets all work orders
    again."""
    force: bool = False
    """Whether to promote the build even if running work orders then have to wait."""
    within_seconds: float = SILENT.total_seconds()
    """How many seconds to wait for a new poll or heartbeat of the build's workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The result of a promotion: both builds, the percentage, and the work orders that now have to wait."""

    build: str
    before: str
    """The build that was current before; empty for workers without a version."""
    percentage: float
    waiting: tuple[str, ...]
    """The running workflows that cannot continue under the build; if the build's patches are unknown, all running
    workflows that use a patch."""


async def promote(client: Client, settings: Settings, call: PromotionCall) -> Promotion:
    """Let a build get all or a percentage of the work orders, including running ones; return the result.

    Raises:
        UsageError: Versioning is off, so builds do not exist.
        NotFoundError: No worker of the build polls; or `ramp` is 0, and no build has a percentage.
        RefusedTransitionError: Running work orders would have to wait, and `force` is false.
        ServerNotReachedError: The server does not answer, or refuses.
    """
    if not settings.versioning:
        raise UsageError("SEPTET_VERSIONING is off: there are no builds.", remedy="Unset it, for workers too.")
    deployment = Deployment(client, settings.task_queue)
    try:
        routing = await deployment.routing()
        build = _target(deployment.name, routing, call, build_id(settings))
        if call.ramp != 0:
            await _until_served(deployment, build, call.within_seconds)
        known = own_patches() if build == build_id(settings) else await _patches_of(deployment, build, call)
        waiting = await _waiting_under(client, settings.task_queue, known)
        if waiting and not call.force:
            raise _refusal(build, waiting, is_known=known is not None)
        await _route(deployment, routing, build, call.ramp)
    except RPCError as error:
        remedy = "`septet doctor` checks the server."
        raise ServerNotReachedError(f"The Temporal server refused: {error.message}.", remedy=remedy) from error
    names = {name for names in waiting.values() for name in names}
    percentage = 100.0 if call.ramp is None or call.ramp == 0 else call.ramp
    return Promotion(build=build, before=routing.current, percentage=percentage, waiting=(*sorted(names),))


async def builds_with_workers(deployment: Deployment) -> Mapping[str, timedelta]:
    """Return the builds with living workers, and the time since each build's last poll.

    A build is left out if its workers have stopped, missed heartbeats, or not polled for `SILENT`.

    Raises:
        RPCError: The server refused.
    """
    polls, workers = await asyncio.gather(deployment.last_polls(), deployment.workers())
    now, ages = datetime.now(UTC), dict[str, timedelta]()
    for build, asked_at in polls.items():
        theirs = [worker for worker in workers if worker.build == build]
        signs = [worker.last_sign_at for worker in theirs if all(each.is_gone(now) for each in theirs)]
        if asked_at > max((now - SILENT, *signs)):
            ages[build] = now - asked_at
    return ages


async def opens_workspaces(deployment: Deployment) -> bool:
    """Return whether any host takes new work.

    Raises:
        RPCError: The server refused.
    """
    polls, workers = await asyncio.gather(deployment.last_polls(OPENINGS), deployment.workers())
    return any_opens(polls.values(), workers, datetime.now(UTC))


def any_opens(polls: Iterable[datetime], workers: Sequence[ListedWorker], now: datetime) -> bool:
    """Return whether any worker of a queue opens workspaces.

    Args:
        polls: The time of each build's last poll to open workspaces; a worker without a free slot does not poll.
        workers: The workers that the server lists; a new worker is listed after its first heartbeat.
    """
    gone = [worker for worker in workers if worker.is_gone(now)]
    since = max((now - SILENT, *(worker.last_sign_at for worker in gone)))
    return any(each.opens and each not in gone for each in workers) or any(asked_at > since for asked_at in polls)


def _target(name: str, routing: Routing, call: PromotionCall, own: str) -> str:
    if call.ramp != 0:
        return call.build or own
    if not routing.ramping:
        see = f"`temporal worker deployment describe --name {name}` shows the builds."
        raise NotFoundError("No build is ramping.", remedy=f"The current one has all work orders already. {see}")
    return routing.current


async def _route(deployment: Deployment, routing: Routing, build: str, ramp: float | None) -> None:
    if ramp is not None:
        await deployment.ramp(build, ramp)
        return
    if build != routing.current:
        await deployment.make_current(build)
    if routing.ramping not in {UNVERSIONED, build}:
        await deployment.ramp(UNVERSIONED, 0)


async def _until_served(deployment: Deployment, build: str, within_seconds: float) -> None:
    """Wait for a new poll or heartbeat of a build, because an old one may be from an ended worker."""
    try:
        async with asyncio.timeout(within_seconds):
            known = await deployment.signs_of(build)
            while not (await deployment.signs_of(build) - known and await deployment.has(build)):  # noqa: ASYNC110 -- a worker's event
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        builds = await builds_with_workers(deployment)
        others = ", ".join(sorted(builds.keys() - {UNVERSIONED, build})) or "none"
        message = f"No worker of build {build} takes work orders from queue {deployment.name!r}."
        remedy = f"Start one with `septet worker`, or name another build. Builds with workers: {others}."
        raise NotFoundError(message, remedy=remedy) from None


async def _patches_of(deployment: Deployment, build: str, call: PromotionCall) -> frozenset[str] | None:
    """Return a build's patches, after a wait if its workers have just started; `None` for unknown patches."""
    if build == UNVERSIONED:
        return None
    with suppress(TimeoutError):
        async with asyncio.timeout(min(call.within_seconds, _TOLD_WITHIN_SECONDS)):
            while (patches := await deployment.patches_of(build)) is None:  # noqa: ASYNC110 -- a worker's event
                await asyncio.sleep(_LOOK_SECONDS)
            return patches
    return None


async def _waiting_under(
    client: Client, task_queue: str, patches: frozenset[str] | None
) -> Mapping[str, list[str]]:
    """Return, for each patch that is missing in `patches`, the running workflows that use the patch."""
    query = f'TaskQueue="{task_queue}" AND ExecutionStatus="Running" AND TemporalChangeVersion IS NOT NULL'
    names: dict[str, list[str]] = defaultdict(list)
    async for row in client.list_workflows(query):
        for patch in set(row.typed_search_attributes.get(_PATCHES) or ()) - (patches or frozenset()):
            names[patch].append(row.id)
    return names


def _refusal(build: str, waiting: Mapping[str, list[str]], *, is_known: bool) -> RefusedTransitionError:
    names = sorted({name for names in waiting.values() for name in names})
    some = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    patches = ", ".join(sorted(waiting))
    message = f"Build {build} lacks the patches {patches}: {some} would wait."
    if not is_known:
        message = f"Build {build} does not report its patches: {some} may wait, which have {patches}."
    remedy = (
        "Promote it once they are closed; with --force they wait until a build with those patches is promoted."
    )
    return RefusedTransitionError(message, remedy=remedy)
