"""Silent hosts: one living host notifies the work orders of a host that falls silent, and again of its return.

All hosts list workers, for a listing costs no Action; only the first living host by name sends signals.
"""

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from temporalio.api.worker.v1 import WorkerInfo
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
from workers.watching.heard_hosts import HeardHosts, WorkerHeartbeat
from workflows.wire.search_attributes import HOST, STAGE, STATUS

_PAGE: Final = 1000
_MOST_PAGES: Final = 100
_REFUSED_FOR_GOOD: Final = frozenset({RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION})
_WITH_A_WORKSPACE: Final = 'WorkflowType IN ("WorkOrder", "PullRequest")'

_log = structlog.get_logger()


@asynccontextmanager
async def watching_hosts(client: Client, host: Host) -> AsyncIterator[HeardHosts | None]:
    """List hosts while the block runs, and notify work orders if this host is the first; yield the living hosts.

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
    """The hosts of a queue that one worker process has heard, and the work orders that it has notified."""

    client: Client
    host: Host
    heard: HeardHosts = field(init=False)
    _told: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The id and the host of each work order that was notified of its silent host, by run."""

    _welcomed: set[str] = field(default_factory=set)
    """The runs that waited for a living host at the last check; these runs probe their host themselves."""

    def __post_init__(self) -> None:
        """Start without a heard host."""
        self.heard = HeardHosts(self.host.id, heartbeat_seconds(self.host.settings.probe_seconds))

    @property
    def remembers(self) -> int:
        """The number of work orders that are recorded as notified."""
        return len(self._told)

    async def look(self) -> None:
        """List the hosts; the first living host by name also notifies work orders of silent and returned hosts.

        Raises:
            RPCError: The server refused.
        """
        heartbeats = [each async for each in self._heartbeats()]
        now = time.monotonic()
        self.heard.note(heartbeats, now)
        if not self.heard.speaks(now):
            return
        living = self.heard.living(now)
        await self._tell_silence(living, now)
        await self._tell_return(living)

    async def _heartbeats(self) -> AsyncIterator[WorkerHeartbeat]:
        """Yield the workers of all hosts that share this host's queue of work orders."""
        prefix, token = self.host.queue_prefix, b""
        for _ in range(_MOST_PAGES):
            request = ListWorkersRequest(
                namespace=self.client.namespace,
                page_size=_PAGE,
                next_page_token=token,
                query=f'TaskQueue STARTS_WITH "{prefix}"',
            )
            page = await self.client.workflow_service.list_workers(request)
            for info in page.workers_info:
                yield _heartbeat(info, prefix)
            if not (token := page.next_page_token):
                return

    async def _tell_silence(self, living: set[str], now: float) -> None:
        orders = self._orders(f"{HOST.name} NOT IN ({_quote(living)})")
        silent = {run_id: (order_id, host) async for run_id, order_id, host in orders}
        self._forget_closed(silent, living)
        for run_id, (order_id, host) in silent.items():
            if self._told.get(run_id) == (order_id, host):
                continue
            since = datetime.now(UTC) - timedelta(seconds=self.heard.silent_seconds(host, now))
            await self._signal(run_id, order_id, "host_silent", HostSilence(host=host, since=since))
            self._told[run_id] = order_id, host
            _log.warning("host_silent", host=host, work_order_id=order_id)

    def _forget_closed(self, silent: Mapping[str, tuple[str, str]], living: set[str]) -> None:
        """Forget the runs that were closed or moved to another host while their old host is still silent."""
        self._told = {
            run_id: order for run_id, order in self._told.items() if run_id in silent or order[1] in living
        }

    async def _tell_return(self, living: set[str]) -> None:
        """Notify the work orders of a returned host that know of its silence or wait for a host.

        Another host may have reported the silence to a waiting work order.
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
        """Yield the run, the id and the host of the running work orders of this queue that meet a condition."""
        queue = self.host.settings.task_queue
        running = f'{_WITH_A_WORKSPACE} AND ExecutionStatus="Running" AND TaskQueue="{queue}"'
        async for order in self.client.list_workflows(f"{running} AND {HOST.name} IS NOT NULL AND {condition}"):
            yield order.run_id, order.id, order.typed_search_attributes.get(HOST) or ""

    async def _signal(self, run_id: str, order_id: str, signal: str, content: Wire | str) -> None:
        """Signal a work order; a closed work order is skipped.

        If a full history accepts no more signals, this is logged, and the other work orders are still notified.
        """
        try:
            await self.client.get_workflow_handle(order_id, run_id=run_id).signal(signal, content)
        except RPCError as error:
            if error.status in _REFUSED_FOR_GOOD:
                _log.warning("host_not_told", work_order_id=order_id, signal=signal, error=error.message)
            elif error.status is not RPCStatusCode.NOT_FOUND:
                raise


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


def _heartbeat(info: WorkerInfo, prefix: str) -> WorkerHeartbeat:
    heartbeat = info.worker_heartbeat
    return WorkerHeartbeat(
        instance=heartbeat.worker_instance_key,
        host=heartbeat.task_queue.removeprefix(prefix).removesuffix(CONTROL),
        sent_at=heartbeat.heartbeat_time.ToNanoseconds(),
        interval_seconds=heartbeat.elapsed_since_last_heartbeat.ToTimedelta().total_seconds(),
        serves_metrics=any(plugin.name == METRICS for plugin in heartbeat.plugins),
    )
