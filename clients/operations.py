"""What can be done with work orders and pipelines: every face asks here and gives on what it is answered."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from clients.disk.log_cache import LogCache
from clients.disk.rescues import snapshots_of
from clients.disk.runs import runs_of
from clients.disk.workspace_view import WorkspaceView
from clients.temporal.board import BoardRows
from clients.temporal.decisions import OrderDecisions
from clients.temporal.pipelines import PipelineClient
from clients.temporal.work_orders import WorkOrders
from clients.watch import Watch
from septet.contracts.replies import DetailReply, LogsReply, RescuesReply, StepsReply
from septet.settings import Settings
from septet.state import StateDir
from workers.connection import connect

ENTRIES_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Operations:
    """Work orders and pipelines on one Temporal namespace, with the files of this host.

    All raise `NotFoundError` for a work order that there is not, `ServerNotReachedError` where nobody answers, and
    `RefusedTransitionError` for what cannot be done with it now.
    """

    orders: WorkOrders
    state: StateDir
    git_env: Mapping[str, str]
    log_cache: LogCache = field(default_factory=LogCache, repr=False, compare=False)

    @property
    def decisions(self) -> OrderDecisions:
        """What people decide about work orders."""
        return OrderDecisions(self.orders)

    @property
    def board(self) -> BoardRows:
        """The work orders by stage."""
        return BoardRows(self.orders.client)

    @property
    def pipelines(self) -> PipelineClient:
        """What can be done with pipelines."""
        return PipelineClient(self.orders.client, self.orders.task_queue, state=self.state)

    async def detail(self, order_id: str) -> DetailReply:
        """Return a work order with its agent runs on this host, its history, and what holds it up."""
        task = await self.orders.get(order_id)
        runs = await asyncio.to_thread(runs_of, self.state, order_id)
        if task.stuck:
            return DetailReply(task=task, runs=runs)
        history, waiting_for = await self.orders.history(order_id), await self.orders.waiting_for(order_id)
        return DetailReply(task=task, runs=runs, history=history, waiting_for=waiting_for)

    async def steps(self, order_id: str) -> StepsReply:
        """Return the steps so far."""
        return StepsReply(steps=(await self.orders.get(order_id)).steps)

    async def logs(
        self, order_id: str, *, after: str = "", offset: int = 0, limit: int = ENTRIES_AT_ONCE
    ) -> LogsReply:
        """Return what its agents said and did on this host.

        Args:
            order_id: The work order.
            after: The id of the last entry that is known.
            offset: How many entries to leave out, after that one.
            limit: The most entries to return.

        Raises:
            NotFoundError: There is no such work order, or its steps ran on another host.
        """
        logs, entries = await asyncio.to_thread(self.log_cache.entries, self.state, order_id)
        if not entries and (await self.orders.get(order_id)).steps:
            logs.must_exist()
        first = offset + next((number for number, entry in enumerate(entries, 1) if entry.id == after), 0)
        page = tuple(entries[first : first + limit])
        more = page[-1].id if page and first + limit < len(entries) else None
        return LogsReply(log_entries=page, total=len(entries), next=more)

    async def rescues(self, order_id: str | None = None, *, everything: bool = False) -> RescuesReply:
        """Return the rescues on this host; with `everything` the checkpoints too."""
        snapshots = await asyncio.to_thread(
            snapshots_of, self.state, self.git_env, order_id, everything=everything
        )
        return RescuesReply(rescues=snapshots)

    def watch(self, order_id: str) -> Watch:
        """Return what looks at a work order again and again, from now on."""
        return Watch(self.orders, WorkspaceView(self.state, self.git_env, order_id))


async def connect_operations(settings: Settings, address: str | None = None) -> Operations:
    """Connect to the server of the settings, or to the one at `address`.

    Raises:
        ServerNotReachedError: Nobody answers there.
    """
    client = await connect(settings, address=address)
    return Operations(WorkOrders(client, settings.task_queue), StateDir(settings.state_dir), settings.git_env)
