"""What can be done with work orders: every face asks here and gives on what it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from clients.agent_logs import AgentLogs
from clients.board import board_of
from clients.kept_on_disk import snapshots_of
from clients.runs_on_disk import runs_of
from clients.work_orders import WorkOrders
from septet.contracts.names import Step
from septet.contracts.order import WorkOrderInput
from septet.contracts.replies import (
    BoardReply,
    DetailReply,
    LogsReply,
    RescuesReply,
    StepsReply,
    TaskReply,
)
from septet.settings import Settings
from septet.state import StateDir
from workers.connection import connect

ENTRIES_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Operations:
    """Work orders on one Temporal namespace, with the files of this host.

    All raise `NotFoundError` for a work order that there is not, `ServerNotReachedError` where nobody answers, and
    `RefusedTransitionError` for what cannot be done with it now.
    """

    orders: WorkOrders
    state: StateDir
    git_env: Mapping[str, str]

    async def run(self, order: WorkOrderInput, order_id: str | None = None) -> TaskReply:
        """Start a work order; its input says whether it waits on the board first.

        Raises:
            AlreadyRunningError: The id was used before.
            InvalidInputError: It is no id.
        """
        return TaskReply(task=await self.orders.start(order, order_id))

    async def detail(self, order_id: str) -> DetailReply:
        """Return a work order with its agent runs on this host, its history, and what holds it up."""
        return DetailReply(
            task=await self.orders.task(order_id),
            runs=runs_of(self.state, order_id),
            history=await self.orders.history(order_id),
            waiting_for=await self.orders.waiting_for(order_id),
        )

    async def steps(self, order_id: str) -> StepsReply:
        """Return the steps so far."""
        return StepsReply(steps=(await self.orders.task(order_id)).steps)

    async def board(self, project: str | None = None) -> BoardReply:
        """Return the work orders by stage."""
        return board_of(project, [task async for task in self.orders.tasks()])

    async def logs(self, order_id: str, *, after: str = "", limit: int = ENTRIES_AT_ONCE) -> LogsReply:
        """Return what its agents said and did on this host; `after` is the id of the last entry that is known.

        Raises:
            NotFoundError: This host has no runs of it.
        """
        logs = AgentLogs(self.state, order_id)
        entries = list(logs.new_entries())
        logs.must_exist()
        known = next((number for number, entry in enumerate(entries, 1) if entry.id == after), 0)
        page = entries[known : known + limit]
        more = known + limit < len(entries)
        return LogsReply(log_entries=tuple(page), next=page[-1].id if more else None)

    async def cancel(self, order_id: str) -> TaskReply:
        """End its agent, keep its work in a rescue, and return the closed work order."""
        return TaskReply(task=await self.orders.cancel(order_id))

    async def retry(self, order_id: str, from_step: Step | None = None) -> TaskReply:
        """Go on with a closed work order at a step: by default at the one that failed."""
        return TaskReply(task=await self.orders.retry(order_id, from_step))

    async def rescues(self, order_id: str | None = None, *, everything: bool = False) -> RescuesReply:
        """Return the rescues on this host; with `everything` the checkpoints too."""
        return RescuesReply(rescues=snapshots_of(self.state, self.git_env, order_id, everything=everything))


async def connected(settings: Settings, address: str | None = None) -> Operations:
    """Connect to the server of the settings, or to the one at `address`.

    Raises:
        ServerNotReachedError: Nobody answers there.
    """
    client = await connect(settings, address=address)
    return Operations(WorkOrders(client, settings.task_queue), StateDir(settings.state_dir), settings.git_env)
