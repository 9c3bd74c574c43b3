"""Read a work order from its workflow and from this host's files: state, steps, plan, changes and logs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.client import WorkflowExecutionDescription

from clients.disk.agent_logs import AgentLogs
from clients.disk.log_cache import LogCache
from clients.disk.runs import network_of, refused_in_setup, refused_to, runs_of
from clients.disk.workspace_view import WorkspaceView, base_of, fails_on_base
from clients.executions.waits import pending_step
from clients.operations.under_way import StepUnderWay
from clients.operations.watch import Watch
from clients.starting.orders import KEPT, Starting, was_used
from clients.temporal.work_orders import WorkOrders
from septet.contracts.names import Status
from septet.contracts.replies import (
    NOBODY_WORKS,
    RUNNING,
    DetailReply,
    DiffReply,
    LogsReply,
    NetworkReply,
    PlanReply,
    StepsReply,
)
from septet.contracts.task import Task
from septet.errors import NotFoundError
from septet.state import StateDir

ENTRIES_AT_ONCE: Final = 1000
REQUESTS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class OrderReading:
    """Reads work orders from the server and from this host's files."""

    orders: WorkOrders
    state: StateDir
    git_env: Mapping[str, str]
    log_cache: LogCache
    starting: Starting
    nobody_works_on: Callable[[WorkflowExecutionDescription], Awaitable[str]]

    async def detail(self, order_id: str) -> DetailReply:
        """Return a work order with its agent runs on this host, its history, and the reason of its wait.

        Raises:
            NotFoundError: The work order does not exist, or was deleted from Temporal.
        """
        try:
            return await self._detail(order_id)
        except NotFoundError as error:
            if not await was_used(self.state, order_id):
                raise
            remedy = KEPT.format(id=order_id)
            raise NotFoundError(f"{order_id} was deleted from Temporal.", remedy=remedy) from error

    async def _task_and_notice(self, order_id: str) -> tuple[Task, str]:
        """Return a work order and a notice; the notice is empty unless the work order lacks a worker."""
        row = await self.orders.describe(order_id)
        nobody = await self.nobody_works_on(row)
        return await (self.orders.without_worker(row) if nobody else self.orders.get_of_row(row)), nobody

    async def _detail(self, order_id: str) -> DetailReply:
        task, nobody = await self._task_and_notice(order_id)
        runs = await asyncio.to_thread(runs_of, self.state, order_id)
        refused = await asyncio.to_thread(refused_in_setup, self.state, order_id)
        base = await asyncio.to_thread(base_of, self.state, order_id)
        fails = () if task.checks_passed else await asyncio.to_thread(fails_on_base, self.state, order_id)
        here = DetailReply(task=task, runs=runs, refused_in_setup=refused, base=base, fails_on_base=fails)
        if task.stuck:
            return here
        if nobody:
            return here.model_copy(update={"waiting_for": nobody})
        history = await self.orders.history(order_id)
        waiting_for = await self.orders.waiting_for(order_id, tells_next_try=True)
        waits = task.question or task.plan_answer or waiting_for
        estimate = await self.starting.estimate_rest(task)
        return here.model_copy(update={"history": history, "waiting_for": waits, "estimate": estimate})

    async def steps(self, order_id: str) -> StepsReply:
        """Return a work order's steps and rounds so far, and the network addresses that the sandbox refused."""
        task, _ = await self._task_and_notice(order_id)
        runs = await asyncio.to_thread(runs_of, self.state, order_id)
        in_setup = await asyncio.to_thread(refused_in_setup, self.state, order_id)
        rounds = task.rework.history if task.rework is not None else ()
        return StepsReply(steps=task.steps, refused_hosts=refused_to(in_setup, runs), rounds=rounds)

    async def plan(self, order_id: str) -> PlanReply:
        """Return the plan of a work order; a very long plan is cut.

        Raises:
            NotFoundError: The work order has no plan yet, or another host has the plan.
        """
        task = await self.orders.get(order_id)
        if task.plan_path is None:
            watch = f"Watch it until there is one: septet watch {order_id}"
            remedy = f"See what became of it: septet show {order_id}" if task.is_closed else watch
            raise NotFoundError(f"{order_id} has no plan yet.", remedy=remedy)
        view = WorkspaceView(self.state, self.git_env, order_id)
        plan = await asyncio.to_thread(view.plan, task.plan_path, 1024 * 1024)
        if plan is None:
            remedy = (
                "Ask where its worker runs, with the worker's SEPTET_STATE_DIR. The plan is "
                f"{task.plan_path} on its branch."
            )
            raise NotFoundError(f"This host does not have the plan of {order_id}.", remedy=remedy)
        return PlanReply(plan=plan, plan_sha256=task.plan_sha256)

    async def diff(self, order_id: str) -> DiffReply:
        """Return the changes of a work order so far; a very long patch is cut.

        Raises:
            NotFoundError: The work order does not exist, or another host has its workspace.
        """
        task = await self.orders.get(order_id)
        view = WorkspaceView(self.state, self.git_env, order_id)
        try:
            return DiffReply(diff=await asyncio.to_thread(view.difference, 16 * 1024 * 1024))
        except NotFoundError as error:
            if not (task.steps or task.pr_url):
                message = f"{order_id} has no changes: none of its steps is done."
                raise NotFoundError(message, remedy=f"See what it does: septet show {order_id}") from error
            where = (
                f"Its pull request has the changes: {task.pr_url}"
                if task.pr_url
                else "Ask where its worker runs, with the worker's SEPTET_STATE_DIR."
            )
            raise NotFoundError(f"This host does not have the workspace of {order_id}.", remedy=where) from error

    async def logs(
        self, order_id: str, *, after: str = "", offset: int = 0, limit: int = ENTRIES_AT_ONCE
    ) -> LogsReply:
        """Return the log entries of a work order's agents on this host.

        The entries begin after the entry with the id `after`; `offset` skips further entries.

        Raises:
            NotFoundError: The work order does not exist, or its steps ran on another host.
        """
        logs, entries = await asyncio.to_thread(self.log_cache.entries, AgentLogs(self.state, order_id))
        if not entries and (await self.orders.get(order_id)).steps:
            logs.must_exist()
        first = offset + next((number for number, entry in enumerate(entries, 1) if entry.id == after), 0)
        page = tuple(entries[first : first + limit])
        more = page[-1].id if page and first + limit < len(entries) else None
        return LogsReply(log_entries=page, total=len(entries), next=more)

    async def network(
        self, order_id: str, *, offset: int = 0, limit: int | None = REQUESTS_AT_ONCE
    ) -> NetworkReply:
        """Return the network requests of a work order's agents and checks on this host.

        Raises:
            NotFoundError: The work order does not exist.
        """
        reply = await asyncio.to_thread(network_of, self.state, order_id, offset=offset, limit=limit)
        if not reply.total:
            await self.orders.get(order_id)
        return reply

    def watch(self, order_id: str, *, patience: timedelta = timedelta(0)) -> Watch:
        """Return a `Watch` of a work order; `looks` fails if the server is absent for longer than `patience`."""
        view = WorkspaceView(self.state, self.git_env, order_id)
        return Watch(self.orders, view, self.nobody_works_on, patience=patience)

    async def step_under_way(self, task: Task) -> StepUnderWay | None:
        """Return the running step of an open work order, or the step that waits for a worker; else `None`.

        Raises:
            NotFoundError: The work order does not exist.
            ServerNotReachedError: The server does not answer, or refuses.
        """
        if task.status not in {Status.RUNNING, Status.WAITING} or task.stuck:
            return None
        row = await self.orders.describe(task.id)
        nobody = await self.nobody_works_on(row)
        step = pending_step(row) if nobody else await self.orders.running_step(task.id)
        if not step:
            return None
        standing = NOBODY_WORKS if nobody else "waiting" if task.status is Status.WAITING else RUNNING
        view = WorkspaceView(self.state, self.git_env, task.id)
        await asyncio.to_thread(view.new_entries)
        return StepUnderWay(step, standing, await asyncio.to_thread(view.tokens_of, step), view.doing)
