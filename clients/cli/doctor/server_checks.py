"""The checks of `septet doctor` at the server: workers and their builds, hosts, seal keys and the clock."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX
from typing import Final

from temporalio.api.common.v1 import Payload
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from clients.cli.doctor.machine_checks import Check
from clients.executions.messages import START_WORKER
from clients.executions.seals import SCHEDULE, SealUse, seals_in_use
from clients.temporal.work_orders import OrderFilter, WorkOrders
from septet.contracts.intake import INTAKE_PREFIX
from septet.contracts.names import Status
from septet.contracts.seal import key_id_of
from septet.contracts.task import TaskError
from septet.errors import SeptetError
from septet.state import StateDir
from septet.system.durable import lock_is_held
from septet.system.text import name_some
from workers.builds.deployment import UNVERSIONED, Deployment, Routing
from workers.builds.promotion import builds_with_workers

_NAME: Final = "workers"
_NAMED: Final = 5
_WITHIN_SECONDS: Final = 5.0


async def workers_check(client: Client, task_queue: str) -> Check:
    """Return a check that each build that receives work orders has a worker, according to the server."""
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
    """Return a warning for each host that does not answer, with the work orders that wait for the host."""
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
    """Return a check that each build that receives work orders has a worker.

    `builds` has each build with workers, and the time since a worker of the build last polled.
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


_ORDERS: Final = frozenset({"WorkOrder", "Pipeline"})
_ADD_KEY: Final = (
    "Add the key to what SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND names. If it is lost, end these with "
    "`temporal workflow terminate --workflow-id ID` and `temporal schedule delete --schedule-id ID`; "
    "`septet doctor --json` lists all of them."
)
_CLOSE_WORKFLOWS: Final = (
    "Run the workers without SEPTET_SEAL_REQUIRED until these workflows have closed, and set it again then."
)
_SEAL_INTAKES: Final = "To have intakes sealed, start a worker once without SEPTET_SEAL_REQUIRED."
_SEAL_JANITORS: Final = (
    "To have a janitor's schedule sealed, start a worker on its host; if the host is gone, run "
    "`temporal schedule delete --schedule-id ID`."
)


@dataclass(frozen=True, slots=True)
class SealCheck(Check):
    """A check of the keys that sealed unfinished work; `message` names only some of the workflows in `uses`."""

    uses: tuple[Mapping[str, object], ...] = ()
    """The workflows and schedules that the message is about, each with the fields of `SealUse`."""


async def seal_checks(client: Client, *, required: bool) -> list[Check]:
    """Return checks of the seal keys and the unsealed input of unfinished work; none if this process has no keys.

    `required` says whether workers refuse unsealed input.
    """
    codec = client.data_converter.payload_codec
    if codec is None:
        return []
    try:
        uses = await seals_in_use(client)
    except RPCError as error:
        remedy = "Run `septet doctor` again when the server answers."
        return [Check("sealing", "warning", f"The server does not list its workflows: {error.message}.", remedy)]
    (payload,) = await codec.encode([Payload()])
    return [keys_check(uses, key_id_of(payload.metadata) or ""), *([unsealed_check(uses)] if required else [])]


def keys_check(uses: Sequence[SealUse], key: str) -> Check:
    """Return a check that names the keys that unfinished work needs in addition to the current `key`."""
    missing = _users(uses, lambda use: use.missing_keys)
    older = _users(uses, lambda use: use.keys - use.missing_keys - {key})
    others = _rows([use for use in uses if use.keys - {key} or use.missing_keys])
    message = f"{key} seals."
    if older:
        message += f" Keep these keys, with which open work began: {older}."
    if missing:
        message += f" These keys are missing here: {missing}."
        return SealCheck("seal keys", "warning", message, _ADD_KEY, others)
    if not older:
        message += f" All open work began with {key}."
    return SealCheck("seal keys", "ok", message, uses=others)


def unsealed_check(uses: Sequence[SealUse]) -> Check:
    """Return a check that names open workflows and schedules with unsealed input, which workers refuse."""
    unsealed = [use for use in uses if use.began_unsealed]
    if not unsealed:
        return Check("sealing", "ok", "Workers refuse unsealed input, and nothing that is open began unsealed.")
    workflows = [use for use in unsealed if use.kind != SCHEDULE]
    schedules = [use for use in unsealed if use.kind == SCHEDULE]
    intakes = [use for use in schedules if use.id.startswith(INTAKE_PREFIX)]
    message, remedies = "Workers refuse unsealed input.", list[str]()
    if workflows:
        stand = "stands" if len(workflows) == 1 else "stand"
        message += f" {_count(workflows, 'workflow')} began unsealed and {stand} still: {_names(workflows)}."
        remedies.append(_CLOSE_WORKFLOWS)
    if schedules:
        message += f" The input of {_count(schedules, 'schedule')} is not sealed: {_names(schedules)}."
    if intakes:
        remedies.append(_SEAL_INTAKES)
    if len(intakes) < len(schedules):
        remedies.append(_SEAL_JANITORS)
    return SealCheck("sealing", "warning", message, " ".join(remedies), _rows(unsealed))


def _users(uses: Sequence[SealUse], keys_of: Callable[[SealUse], frozenset[str]]) -> str:
    """Return a text with the keys that `keys_of` selects, each with some ids of workflows that need the key."""
    keys = sorted(frozenset[str]().union(*map(keys_of, uses)))
    return "; ".join(f"{key} ({_names([use for use in uses if key in keys_of(use)])})" for key in keys)


def _count(uses: Sequence[SealUse], noun: str) -> str:
    return f"{len(uses)} {noun}{'s' * (len(uses) != 1)}"


def _names(uses: Sequence[SealUse]) -> str:
    """Return a text with some ids of `uses`; work orders and pipelines come first."""
    return name_some([use.id for use in sorted(uses, key=lambda use: (use.kind not in _ORDERS, use.id))], _NAMED)


def _rows(uses: Sequence[SealUse]) -> tuple[Mapping[str, object], ...]:
    """Return `uses` as JSON objects for programs, sorted by id."""
    return tuple(
        {**asdict(use), "keys": sorted(use.keys), "missing_keys": sorted(use.missing_keys)}
        for use in sorted(uses, key=lambda use: use.id)
    )


_QUEUE: Final = "septet-clock"
"""The name of an unused task queue, which the check of the clock polls."""
_POLL: Final = timedelta(seconds=5)
_OFF: Final = timedelta(seconds=2)


async def clock_checks(client: Client, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[Check]:
    """Compare this machine's clock with the server's; return no check if the server does not report its time.

    The server reports the time of a queue's last poll, so this function polls an unused queue.
    """
    queue = Deployment(client, _QUEUE)
    poll = PollWorkflowTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=_QUEUE), identity=client.identity
    )
    try:
        async with asyncio.timeout(3.0):
            before = await queue.last_polls()
            asked_at = now()
            asking = asyncio.ensure_future(client.workflow_service.poll_workflow_task_queue(poll, timeout=_POLL))
            try:
                while (polls := await queue.last_polls()) == before:  # noqa: ASYNC110 -- the server sends no event
                    await asyncio.sleep(0.05)
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
