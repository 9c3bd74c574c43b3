"""What can be done with work orders: every face asks here and gives on what it is answered."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from clients.board import board_page
from clients.kept_on_disk import snapshots_of
from clients.log_books import LogBooks
from clients.once import start_once
from clients.order_list import list_orders
from clients.pipeline_operations import PipelineOperations
from clients.pipelines import Pipelines
from clients.rows import PAGE as TASKS_AT_ONCE
from clients.rows import Rows
from clients.runs_on_disk import runs_of
from clients.watch import Watch
from clients.work_orders import WorkOrders
from clients.workspace_view import WorkspaceView
from septet.contracts.decisions import MoveCall, PlanDecision, RetryCall, checked
from septet.contracts.names import Status
from septet.contracts.order import WorkOrderInput
from septet.contracts.replies import (
    BoardReply,
    DetailReply,
    LogsReply,
    RescuesReply,
    StepsReply,
    TaskReply,
    TasksReply,
)
from septet.errors import RefusedTransitionError
from septet.git.project import with_project
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
    books: LogBooks = field(default_factory=LogBooks, repr=False, compare=False)

    @property
    def pipelines(self) -> PipelineOperations:
        """What can be done with pipelines."""
        return PipelineOperations(Pipelines(self.orders.client, self.orders.task_queue), self.state)

    async def run(self, order: WorkOrderInput, order_id: str | None = None, *, key: str = "") -> TaskReply:
        """Start a work order; its input says whether it waits on the board first.

        With a key it is started once: the same key and input give the same work order again.

        Raises:
            AlreadyRunningError: The id was used before, or the key with another input.
            InvalidInputError: It is no id.
        """
        order = with_project(order)
        if key:
            return TaskReply(task=await start_once(self.orders, order, key, order_id))
        return TaskReply(task=await self.orders.start(order, order_id))

    async def tasks(self, status: Status | None = None, *, limit: int = 100, after: str = "") -> TasksReply:
        """Return work orders page by page, as far as search attributes tell.

        Raises:
            NotFoundError: No page goes on at `after`.
        """
        return await list_orders(self.orders.client, status, limit=limit, after=after)

    async def detail(self, order_id: str) -> DetailReply:
        """Return a work order with its agent runs on this host, its history, and what holds it up."""
        return DetailReply(
            task=await self.orders.task(order_id),
            runs=await asyncio.to_thread(runs_of, self.state, order_id),
            history=await self.orders.history(order_id),
            waiting_for=await self.orders.waiting_for(order_id),
        )

    async def steps(self, order_id: str) -> StepsReply:
        """Return the steps so far."""
        return StepsReply(steps=(await self.orders.task(order_id)).steps)

    async def board(
        self, project: str | None = None, *, after: str = "", limit: int = TASKS_AT_ONCE
    ) -> BoardReply:
        """Return a page of the work orders by stage, with the numbers of all; `after` is a page's `next`.

        Raises:
            NotFoundError: `after` is no such word.
        """
        return await board_page(Rows(self.orders.client), project, after=after, limit=limit)

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
        logs, entries = await asyncio.to_thread(self.books.entries, self.state, order_id)
        if not entries and (await self.orders.task(order_id)).steps:
            logs.must_exist()
        first = offset + next((number for number, entry in enumerate(entries, 1) if entry.id == after), 0)
        page = tuple(entries[first : first + limit])
        more = page[-1].id if page and first + limit < len(entries) else None
        return LogsReply(log_entries=page, total=len(entries), next=more)

    def watch(self, order_id: str) -> Watch:
        """Return what looks at a work order again and again, from now on."""
        return Watch(self.orders, WorkspaceView(self.state, self.git_env, order_id))

    async def move(self, order_id: str, call: MoveCall) -> TaskReply:
        """Move it on the board; a refusal lists where it may move from where it is."""
        return TaskReply(task=await self.orders.move(order_id, call))

    async def approve(
        self, order_id: str, plan_sha256: str | None = None, who: str = "", why: str = ""
    ) -> TaskReply:
        """Go on with a plan: the one that waits now, where none is named by its SHA-256."""
        plan = plan_sha256 or await self._plan(order_id)
        decision = checked(PlanDecision, plan_sha256=plan, who=who, why=why)
        return TaskReply(task=await self.orders.approve(order_id, decision))

    async def reject(
        self, order_id: str, feedback: str, plan_sha256: str | None = None, who: str = "", why: str = ""
    ) -> TaskReply:
        """Have it planned again, with the feedback: where none is named, the plan that waits now is rejected."""
        plan = plan_sha256 or await self._plan(order_id)
        decision = checked(PlanDecision, plan_sha256=plan, who=who, why=why, feedback=feedback)
        return TaskReply(task=await self.orders.reject(order_id, decision))

    async def cancel(self, order_id: str, who: str = "", why: str = "") -> TaskReply:
        """End its agent, keep its work in a rescue, and return the closed work order."""
        return TaskReply(task=await self.orders.cancel(order_id, who, why))

    async def retry(self, order_id: str, call: RetryCall | None = None) -> TaskReply:
        """Go on with it; a closed one goes on at a step: by default at the one that failed."""
        return TaskReply(task=await self.orders.retry(order_id, call))

    async def rescues(self, order_id: str | None = None, *, everything: bool = False) -> RescuesReply:
        """Return the rescues on this host; with `everything` the checkpoints too."""
        kept = await asyncio.to_thread(snapshots_of, self.state, self.git_env, order_id, everything=everything)
        return RescuesReply(rescues=kept)

    async def _plan(self, order_id: str) -> str:
        """Return the SHA-256 of the plan that waits now."""
        task = await self.orders.task(order_id)
        if task.plan_sha256 is None:
            message = f"{order_id} has no plan to decide on: it is {task.stage.value} ({task.status.value})."
            raise RefusedTransitionError(
                message, remedy="Only a work order with `approve_plan` waits with its plan."
            )
        return task.plan_sha256


async def connected(settings: Settings, address: str | None = None) -> Operations:
    """Connect to the server of the settings, or to the one at `address`.

    Raises:
        ServerNotReachedError: Nobody answers there.
    """
    client = await connect(settings, address=address)
    return Operations(WorkOrders(client, settings.task_queue), StateDir(settings.state_dir), settings.git_env)
