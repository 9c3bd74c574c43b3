"""Notify work orders when their host falls silent or returns.

All hosts list workers, which costs nothing. Only the living host that is alphabetically first sends signals.
"""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio.api.workflowservice.v1 import ListWorkersRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.host.host import Host
from septet.contracts.names import CONTROL, Stage, Status
from septet.contracts.wire import Wire
from septet.contracts.workspace import LIVENESS, HostSilence
from workers.beside import beside, repeat
from workers.observing.runtime import heartbeat_seconds
from workers.watching.announced_agents import METRICS
from workflows.wire.search_attributes import HOST, STAGE, STATUS

SILENT_AFTER: Final = 3
"""The number of missed heartbeats after which a worker counts as silent."""


@dataclass(frozen=True, slots=True)
class WorkerHeartbeat:
    """A worker in the server's list; a dead worker remains listed for minutes."""

    instance: str
    host: str
    sent_at: int
    """The time of the heartbeat by the worker's clock; clocks differ, so only a change of the time counts."""
    interval_seconds: float
    """The seconds between the worker's heartbeats."""
    serves_metrics: bool = False


@dataclass(frozen=True, slots=True)
class _HeardWorker:
    heartbeat: WorkerHeartbeat
    heard_at: float


@dataclass(slots=True)
class HeardHosts:
    """The hosts whose heartbeats one host has seen, including that host. Times are monotonic seconds."""

    own: str
    interval_seconds: float
    """The seconds between heartbeats of this host's workers."""
    _workers: dict[str, _HeardWorker] = field(default_factory=dict)
    _listening_since: float | None = None
    """The time since which every list has named this host; a restarted server's list is empty at first."""

    def note(self, heartbeats: Iterable[WorkerHeartbeat], now: float) -> None:
        """Record the heartbeats that the server has just listed."""
        before, self._workers = self._workers, {}
        for heartbeat in heartbeats:
            known = before.get(heartbeat.instance)
            is_new = known is None or known.heartbeat.sent_at != heartbeat.sent_at
            heard_at = now if known is None or is_new else known.heard_at
            self._workers[heartbeat.instance] = _HeardWorker(heartbeat, heard_at)
        if self.own not in self.living(now):
            self._listening_since = None
        elif self._listening_since is None:
            self._listening_since = now

    def living(self, now: float, *, with_metrics: bool = False) -> set[str]:
        """Return the hosts with a living worker; if `with_metrics`, only workers that serve metrics count."""
        return {
            worker.heartbeat.host
            for worker in self._workers.values()
            if now - worker.heard_at < self._limit(worker.heartbeat.interval_seconds)
            and (worker.heartbeat.serves_metrics or not with_metrics)
        }

    def silent_seconds(self, host: str, now: float) -> float:
        """Return for how many seconds a host has been silent, as far as this host has seen."""
        heard = [each.heard_at for each in self._workers.values() if each.heartbeat.host == host]
        since = max(heard, default=self._listening_since)
        return now - since if since is not None else 0.0

    def speaks(self, now: float, *, with_metrics: bool = False) -> bool:
        """Return whether this host is alphabetically the first living host, and has listened for long enough."""
        if self._listening_since is None or now - self._listening_since < self._limit(self.interval_seconds):
            return False
        return min(self.living(now, with_metrics=with_metrics), default="") == self.own

    def _limit(self, interval_seconds: float) -> float:
        return SILENT_AFTER * max(interval_seconds, self.interval_seconds)


_REFUSED_FOR_GOOD: Final = frozenset({RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION})
_WITH_A_WORKSPACE: Final = 'WorkflowType IN ("WorkOrder", "PullRequest")'

_log = structlog.get_logger()


@asynccontextmanager
async def watching_hosts(client: Client, host: Host) -> AsyncIterator[HeardHosts | None]:
    """List hosts while the block runs, and notify work orders; yield the seen hosts.

    Yields `None` on a server that does not list workers.
    """
    if LIVENESS not in host.serves:
        yield None
        return
    watch = HostsWatch(client, host)

    async with beside(repeat(watch.look, lambda: watch.heard.interval_seconds, "hosts_not_heard")):
        yield watch.heard


@dataclass(slots=True)
class HostsWatch:
    """Lists a queue's hosts for one worker process, and notifies work orders of silent and returned hosts."""

    client: Client
    host: Host
    heard: HeardHosts = field(init=False)
    _told: dict[str, tuple[str, str]] = field(default_factory=dict)
    """For each run, the id and the silent host of a work order that was notified."""

    _welcomed: set[str] = field(default_factory=set)
    """The waiting runs whose hosts lived at the last check; each run was notified of its host's return."""

    def __post_init__(self) -> None:
        """Create an empty record of heard hosts."""
        self.heard = HeardHosts(self.host.id, heartbeat_seconds(self.host.settings.probe_seconds))

    @property
    def remembers(self) -> int:
        """The number of work orders that are remembered as notified."""
        return len(self._told)

    async def look(self) -> None:
        """List the hosts; if this host is alphabetically the first living host, also notify work orders.

        Raises:
            RPCError: The server refused.
        """
        heartbeats = [each async for each in self._heartbeats()]
        now = time.monotonic()
        self.heard.note(heartbeats, now)
        if not self.heard.speaks(now):
            return
        living = self.heard.living(now)
        orders = self._orders(f"{HOST.name} NOT IN ({_quote(living)})")
        silent = {run_id: (order_id, host) async for run_id, order_id, host in orders}
        # A closed run, or a run that moved to another host, is forgotten while its old host is still silent.
        self._told = {run: order for run, order in self._told.items() if run in silent or order[1] in living}
        for run_id, (order_id, host) in silent.items():
            if self._told.get(run_id) == (order_id, host):
                continue
            since = datetime.now(UTC) - timedelta(seconds=self.heard.silent_seconds(host, now))
            await self._signal(run_id, order_id, "host_silent", HostSilence(host=host, since=since))
            self._told[run_id] = order_id, host
            _log.warning("host_silent", host=host, work_order_id=order_id)
        await self._tell_return(living)

    async def _heartbeats(self) -> AsyncIterator[WorkerHeartbeat]:
        """Yield the heartbeats of the workers of all hosts that share this host's queue of work orders."""
        prefix, token = self.host.queue_prefix, b""
        for _ in range(100):
            request = ListWorkersRequest(
                namespace=self.client.namespace,
                page_size=1000,
                next_page_token=token,
                query=f'TaskQueue STARTS_WITH "{prefix}"',
            )
            page = await self.client.workflow_service.list_workers(request)
            for info in page.workers_info:
                heartbeat = info.worker_heartbeat
                yield WorkerHeartbeat(
                    instance=heartbeat.worker_instance_key,
                    host=heartbeat.task_queue.removeprefix(prefix).removesuffix(CONTROL),
                    sent_at=heartbeat.heartbeat_time.ToNanoseconds(),
                    interval_seconds=heartbeat.elapsed_since_last_heartbeat.ToTimedelta().total_seconds(),
                    serves_metrics=any(plugin.name == METRICS for plugin in heartbeat.plugins),
                )
            if not (token := page.next_page_token):
                return

    async def _tell_return(self, living: set[str]) -> None:
        """Notify work orders whose host has returned, if they wait or this process notified them of the silence.

        Waiting work orders may have been notified of the silence by another host.
        """
        waiting = f'{STATUS.name}="{Status.WAITING}" AND {STAGE.name}="{Stage.BLOCKED}"'
        orders = self._orders(f"{waiting} AND {HOST.name} IN ({_quote(living)})")
        waiting_by_run = {run_id: (order_id, host) async for run_id, order_id, host in orders}
        told = {run_id: order for run_id, order in self._told.items() if order[1] in living}
        for run_id, (order_id, host) in (told | waiting_by_run).items():
            if run_id in told or run_id not in self._welcomed:
                await self._signal(run_id, order_id, "host_back", host)
            self._told.pop(run_id, None)
        self._welcomed = set(waiting_by_run)

    async def _orders(self, condition: str) -> AsyncIterator[tuple[str, str, str]]:
        """Yield the run, the id and the host of each running work order of this queue that meets a condition."""
        queue = self.host.settings.task_queue
        running = f'{_WITH_A_WORKSPACE} AND ExecutionStatus="Running" AND TaskQueue="{queue}"'
        async for order in self.client.list_workflows(f"{running} AND {HOST.name} IS NOT NULL AND {condition}"):
            yield order.run_id, order.id, order.typed_search_attributes.get(HOST) or ""

    async def _signal(self, run_id: str, order_id: str, signal: str, content: Wire | str) -> None:
        """Signal a work order, unless it is closed. If its history is full, log that the signal was refused."""
        try:
            await self.client.get_workflow_handle(order_id, run_id=run_id).signal(signal, content)
        except RPCError as error:
            if error.status in _REFUSED_FOR_GOOD:
                _log.warning("host_not_told", work_order_id=order_id, signal=signal, error=error.message)
            elif error.status is not RPCStatusCode.NOT_FOUND:
                raise


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))
