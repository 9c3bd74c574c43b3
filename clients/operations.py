"""The operations on work orders and pipelines that the CLI, the HTTP API, the MCP server and the page share."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError

from clients.asked_agents import agents_asked_for
from clients.disk.log_cache import LogCache
from clients.order_checks import (
    check_agents,
    check_folder,
    checked_order,
)
from clients.repository_path import with_host
from clients.temporal.agents import check_forge_key, check_worker_agents, first_agent, worker_agents
from clients.temporal.work_orders import WorkOrders, id_of_key
from septet.contracts.costs import Estimate
from septet.contracts.names import ORDER_ID, Stage
from septet.contracts.order import WorkOrderInput
from septet.contracts.pull_request_names import LOCAL_PULL
from septet.contracts.replies import (
    DetailReply,
    DiffReply,
    LogsReply,
    NetworkReply,
    PlanReply,
    RescuesReply,
    RestoredReply,
    StartReply,
    StepsReply,
    TaskReply,
)
from septet.contracts.task import Task
from septet.costs.estimate import REST_STEPS, Question, WorkAhead
from septet.errors import AlreadyRunningError, NotFoundError, RefusedTransitionError, SeptetError
from septet.git.engine.address import parse_address
from septet.git.engine.project import with_project
from septet.settings import Settings
from septet.state import StateDir
from workers.connection.connection import connect, is_loopback

if TYPE_CHECKING:
    from clients.pipeline_operations import PipelineOperations
    from clients.temporal.board import BoardRows
    from clients.temporal.budgets import BudgetClient
    from clients.temporal.costs import CostClient
    from clients.temporal.decisions import OrderDecisions
    from clients.temporal.deliveries import Deliveries
    from clients.temporal.intakes import IntakeClient
    from clients.temporal.pipelines import PipelineClient
    from clients.temporal.tracker_deliveries import TrackerDeliveries
    from clients.watch import Watch
    from septet.contracts.intake import IntakeInput, IntakeReply

ENTRIES_AT_ONCE: Final = 1000
REQUESTS_AT_ONCE: Final = 1000
_KEPT: Final = "Its work on this host is kept: septet rescue list {id}"
_LOOKS_AFTER_MERGE: Final = 25
"""How often `merge` checks whether the board shows the merge."""
_LOOK_SECONDS: Final = 0.2
_PLAN_BYTES: Final = 1024 * 1024
_PATCH_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Operations:
    """Work orders and pipelines on one Temporal namespace, with the files of this host.

    All methods raise `NotFoundError` if there is no such work order, `ServerNotReachedError` if nobody answers,
    and `RefusedTransitionError` if the work order's state does not allow the request.
    """

    orders: WorkOrders
    state: StateDir
    git_env: Mapping[str, str]
    log_cache: LogCache = field(default_factory=LogCache, repr=False, compare=False)

    @property
    def decisions(self) -> "OrderDecisions":
        """People's decisions on work orders."""
        from clients.temporal.decisions import OrderDecisions

        return OrderDecisions(self.orders, nobody_works=self.nobody_works_on)

    @property
    def board(self) -> "BoardRows":
        """The work orders by stage."""
        from clients.temporal.board import BoardRows

        return BoardRows(self.orders.client)

    @property
    def budgets(self) -> "BudgetClient":
        """The budgets of work orders, pipelines, projects and days."""
        from clients.temporal.budgets import BudgetClient

        return BudgetClient(self.orders.client, self.orders.task_queue)

    @property
    def costs(self) -> "CostClient":
        """The costs of past work orders, and estimates for new ones."""
        from clients.temporal.costs import CostClient

        return CostClient(self.orders.client, self.orders.task_queue)

    @property
    def pipelines(self) -> "PipelineClient":
        """The client of pipelines."""
        from clients.temporal.pipelines import PipelineClient

        return PipelineClient(self.orders.client, self.orders.task_queue, state=self.state)

    @property
    def for_pipelines(self) -> "PipelineOperations":
        """The checked start of pipelines, and their estimates."""
        from clients.pipeline_operations import PipelineOperations

        return PipelineOperations(self.orders, self.pipelines, self.costs, self.git_env, is_here=self.is_here)

    @property
    def intakes(self) -> "IntakeClient":
        """The intakes, which turn issues into work orders."""
        from clients.temporal.intakes import IntakeClient

        return IntakeClient(self.orders.client, self.orders.task_queue)

    @property
    def deliveries(self) -> "Deliveries":
        """The webhooks of forges."""
        from clients.temporal.deliveries import Deliveries

        return Deliveries(self.orders.client, self.orders.task_queue)

    @property
    def tracker_deliveries(self) -> "TrackerDeliveries":
        """The webhooks of trackers."""
        from clients.temporal.tracker_deliveries import TrackerDeliveries

        return TrackerDeliveries(self.orders.client, self.orders.task_queue)

    async def add_intake(self, intake: "IntakeInput") -> "IntakeReply":
        """Check an intake for mistakes, and add it, so that the issues of its label become work orders.

        Raises:
            InvalidInputError: There is no such repository or agent, or a tracker has no key.
            AlreadyRunningError: Another intake takes these issues already.
        """
        from clients.tracked_issue import expect_team
        from septet.settings import load_settings
        from septet.trackers.team_page import team_page

        intake = intake.model_copy(update={"repository": with_host(intake.repository)})
        check_agents(agent for agent in (intake.agent,) if agent is not None)
        if (page := team_page(intake.repository)) is not None:
            expect_team(page, load_settings())
            return await self.intakes.add(intake)
        address = parse_address(intake.repository, home=Path.home())
        if self.is_here and address.path is not None:
            check_folder(address.path)
        return await self.intakes.add(intake)

    async def start(
        self, order: WorkOrderInput, order_id: str | None = None, *, key: str = "", again: bool = False
    ) -> StartReply:
        """Check a work order for mistakes, start it, and estimate its cost.

        Args:
            order: The input; its stage decides whether the work order waits on the board first.
            order_id: The id; generated when absent.
            key: The same key and input return the same work order.
            again: Start another one for an issue that has an open one.

        Raises:
            InvalidInputError: No repository, no agent, or a work order in `after` that does not exist.
            AgentMissingError: No worker can use its agent.
            AlreadyRunningError: The id was used before, or the issue has an open work order.
            TrackerError, TrackerUnavailableError: The issue lives in a tracker, which refused or did not answer.
        """
        if key:
            from clients.tracked_issue import id_of_issue

            order_id = order_id or id_of_issue(order, again=again) or id_of_key(key)
        if key and order_id is not None and await self.orders.exists(order_id):
            order, agent = await self._prepare_repeat(order, order_id)
        else:
            order, order_id = await self.find_order(order, order_id, again=again)
            order, agent = await self._prepare(order, order_id, again=again)
        run = self.orders.run(order, order_id, key=key)
        reply, estimate = await asyncio.gather(run, self._estimate_for(order, agent))
        return StartReply(task=reply.task, estimate=estimate)

    async def begin(
        self, order: WorkOrderInput, order_id: str | None = None, *, again: bool = False
    ) -> tuple[Task, "asyncio.Task[Estimate]"]:
        """Start a work order as `start` does, but return without a worker's answer.

        Returns:
            The work order as its input describes it, once the server has it; and the task of its estimate.

        Raises:
            SeptetError: As for `start`.
        """
        order, order_id = await self.find_order(order, order_id, again=again)
        order, agent = await self._prepare(order, order_id, again=again)
        estimate = asyncio.create_task(self._estimate_for(order, agent))
        try:
            return await self.orders.put(with_project(order), order_id), estimate
        except BaseException:
            estimate.cancel()
            raise

    async def estimate(self, order: WorkOrderInput) -> Estimate:
        """Return a work order's estimate from earlier ones; its agent may be a worker's default."""
        look = asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here)
        agents, hosts = await asyncio.gather(look, worker_agents(self.orders.client, self.orders.task_queue))
        return await self._estimate_for(order, first_agent(agents, hosts))

    async def _estimate_for(self, order: WorkOrderInput, agent: str) -> Estimate:
        project = with_project(order).project or ""
        return await self.costs.estimate(Question(project=project, agent=agent, model=order.model or ""))

    async def estimate_rest(self, task: Task) -> Estimate | None:
        """Return the estimate for the rest of a work order that waits with its plan; `None` for others.

        Raises:
            SeptetError: The server refused.
        """
        if not task.waits_for_a_decision or task.assigned_agent is None:
            return None
        order = await self.orders.input_of(WorkOrderInput, task.id)
        question = Question(
            project=task.project,
            agent=task.assigned_agent,
            model=(order.model if order is not None else None) or "",
            work=(WorkAhead(REST_STEPS, task.plan_bytes or 0),),
            is_rest=True,
        )
        return await self.costs.estimate(question)

    async def prepare(
        self, order: WorkOrderInput, order_id: str | None = None, *, again: bool = False
    ) -> WorkOrderInput:
        """Check a work order for mistakes as `start` does, and return the input that can be started.

        Raises:
            SeptetError: As for `start`.
        """
        order, order_id = await self.find_order(order, order_id, again=again)
        return (await self._prepare(order, order_id, again=again))[0]

    async def _prepare(
        self, order: WorkOrderInput, order_id: str | None, *, again: bool
    ) -> tuple[WorkOrderInput, str]:
        """Return what `prepare` returns, and the work order's agent; empty if no worker announced a default."""
        order = checked_order(order, is_here=self.is_here)
        if order_id and await self._was_used_here(order_id) and not await self.orders.exists(order_id):
            message = f"The id {order_id} was used before, by a work order that was deleted from Temporal."
            raise AlreadyRunningError(message, remedy=f"Choose another id. {_KEPT.format(id=order_id)}")
        agents, _, hosts = await asyncio.gather(
            asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here),
            self.orders.check_start(order, order_id, again=again),
            worker_agents(self.orders.client, self.orders.task_queue),
        )
        named = agents if order.fallback_agent is None else (*agents, order.fallback_agent)
        await check_worker_agents(self.orders.client, hosts, named)
        check_forge_key(hosts, order.repository)
        return order, first_agent(agents, hosts)

    async def _prepare_repeat(self, order: WorkOrderInput, order_id: str) -> tuple[WorkOrderInput, str]:
        """Return what `_prepare` returns, for a work order that was started before: without its checks."""
        from clients.tracked_issue import with_issue_of

        first = await self.orders.input_of(WorkOrderInput, order_id) if order.tracker is not None else None
        order = checked_order(with_issue_of(order, first) if first is not None else order, is_here=False)
        agents: Sequence[str | None] = ()
        with suppress(SeptetError):  # its repository has changed since
            agents = await asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here)
        return order, first_agent(agents, await worker_agents(self.orders.client, self.orders.task_queue))

    @staticmethod
    async def find_order(
        order: WorkOrderInput, order_id: str | None, *, again: bool
    ) -> tuple[WorkOrderInput, str | None]:
        """Return a work order and its id, with its issue read from the tracker if it is in one."""
        if order.tracker is None:
            return order, order_id
        from clients.tracked_issue import find_order
        from septet.settings import load_settings

        return await asyncio.to_thread(find_order, order, order_id, load_settings(), again=again)

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine, so that its workers share this machine's disk."""
        return is_loopback(self.orders.client.service_client.config.target_host)

    async def nobody_works(self) -> str:
        """Return a notice, with its remedy, if no worker runs for this queue; else an empty text."""
        from clients.temporal.presence import why_nobody_works

        return await why_nobody_works(self.orders.client, self.orders.task_queue, self.state)

    async def nobody_works_on(self, row: WorkflowExecutionDescription) -> str:
        """Return a notice, with its remedy, if no worker runs for an open work order; else an empty text."""
        from clients.temporal.presence import why_nobody_works_on

        return await why_nobody_works_on(self.orders.client, row, self.state)

    async def _was_used_here(self, order_id: str) -> bool:
        """Return whether this host has a work order's workspace; the work order may be deleted since."""
        from septet.git.workspace.record import find_record

        is_id = ORDER_ID.fullmatch(order_id) is not None
        return is_id and await asyncio.to_thread(find_record, self.state, order_id) is not None

    async def detail(self, order_id: str) -> DetailReply:
        """Return a work order with its agent runs on this host, its history, and what holds it up.

        Raises:
            NotFoundError: There is no such work order, or it was deleted from Temporal.
        """
        try:
            return await self._detail(order_id)
        except NotFoundError as error:
            if not await self._was_used_here(order_id):
                raise
            remedy = _KEPT.format(id=order_id)
            raise NotFoundError(f"{order_id} was deleted from Temporal.", remedy=remedy) from error

    async def _detail(self, order_id: str) -> DetailReply:
        from clients.disk.network_requests import refused_in_setup
        from clients.disk.runs import runs_of
        from clients.disk.workspace_view import base_of, fails_on_base

        row = await self.orders.describe(order_id)
        nobody = await self.nobody_works_on(row)
        task = await (self.orders.without_worker(row) if nobody else self.orders.get_of_row(row))
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
        estimate = await self.estimate_rest(task)
        return here.model_copy(update={"history": history, "waiting_for": waits, "estimate": estimate})

    async def steps(self, order_id: str) -> StepsReply:
        """Return the steps so far."""
        from clients.disk.network_requests import refused_in_setup, refused_to
        from clients.disk.runs import runs_of

        row = await self.orders.describe(order_id)
        nobody = await self.nobody_works_on(row)
        task = await (self.orders.without_worker(row) if nobody else self.orders.get_of_row(row))
        runs = await asyncio.to_thread(runs_of, self.state, order_id)
        in_setup = await asyncio.to_thread(refused_in_setup, self.state, order_id)
        rounds = task.rework.history if task.rework is not None else ()
        return StepsReply(steps=task.steps, refused_hosts=refused_to(in_setup, runs), rounds=rounds)

    async def plan(self, order_id: str) -> PlanReply:
        """Return the plan of a work order, whole unless it is very long.

        Raises:
            NotFoundError: It has none yet, or another host has it.
        """
        from clients.disk.workspace_view import WorkspaceView

        task = await self.orders.get(order_id)
        if task.plan_path is None:
            remedy = f"Watch it until there is one: septet watch {order_id}"
            if task.is_closed:
                remedy = f"See what became of it: septet show {order_id}"
            raise NotFoundError(f"{order_id} has no plan yet.", remedy=remedy)
        view = WorkspaceView(self.state, self.git_env, order_id)
        plan = await asyncio.to_thread(view.plan, task.plan_path, _PLAN_BYTES)
        if plan is None:
            remedy = (
                "Ask where its worker runs, with the worker's SEPTET_STATE_DIR. The plan is "
                f"{task.plan_path} on its branch."
            )
            raise NotFoundError(f"This host does not have the plan of {order_id}.", remedy=remedy)
        return PlanReply(plan=plan, plan_sha256=task.plan_sha256)

    async def diff(self, order_id: str) -> DiffReply:
        """Return the changes of a work order so far, whole unless they are very long.

        Raises:
            NotFoundError: There is no such work order, or another host has its workspace.
        """
        from clients.disk.workspace_view import WorkspaceView

        task = await self.orders.get(order_id)
        view = WorkspaceView(self.state, self.git_env, order_id)
        try:
            return DiffReply(diff=await asyncio.to_thread(view.difference, _PATCH_BYTES))
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

    async def refresh(self, order_id: str) -> TaskReply:
        """Make a work order check now what it waits for: a pull request, a host, or earlier work orders.

        Raises:
            NotFoundError: There is no such work order.
        """
        await self.orders.nudge(order_id)
        return TaskReply(task=await self.orders.get(order_id))

    async def logs(
        self, order_id: str, *, after: str = "", offset: int = 0, limit: int = ENTRIES_AT_ONCE
    ) -> LogsReply:
        """Return the log entries of a work order's agents on this host.

        Args:
            order_id: The work order.
            after: The id of the last entry that the caller has.
            offset: How many entries to skip after it.
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

    async def network(
        self, order_id: str, *, offset: int = 0, limit: int | None = REQUESTS_AT_ONCE
    ) -> NetworkReply:
        """Return the network requests of a work order's agents and checks on this host.

        Args:
            order_id: The work order.
            offset: How many requests to skip.
            limit: The most to return; `None` for all.

        Raises:
            NotFoundError: There is no such work order.
        """
        from clients.disk.network_requests import network_of

        reply = await asyncio.to_thread(network_of, self.state, order_id, offset=offset, limit=limit)
        if not reply.total:
            await self.orders.get(order_id)
        return reply

    async def rescues(self, order_id: str | None = None, *, everything: bool = False) -> RescuesReply:
        """Return the rescues on this host; with `everything` the checkpoints too."""
        from clients.disk.rescues import snapshots_of

        snapshots = await asyncio.to_thread(
            snapshots_of, self.state, self.git_env, order_id, everything=everything
        )
        return RescuesReply(rescues=snapshots)

    async def merge(self, order_id: str) -> TaskReply:
        """Merge the pull request of a work order whose forge is a repository on this machine.

        Raises:
            ForgeError: The pull request is not open any more, or conflicts with its base.
        """
        from clients.temporal.pull_request_watch import look_now
        from septet.forges.local.forge import LocalForge

        task = await self.orders.get(order_id)
        pull = LOCAL_PULL.fullmatch(task.pr_url or "")
        if pull is None:
            where = f"its pull request is {task.pr_url}" if task.pr_url else "it has no pull request yet"
            remedy = "Merge it on its own forge." if task.pr_url else "Wait for its last step."
            raise RefusedTransitionError(f"{order_id} cannot be merged here: {where}.", remedy=remedy)
        forge = LocalForge(Path(unquote(pull["path"])), self.git_env)
        merged = await asyncio.to_thread(forge.merge_pull_request, int(pull["number"]))
        with suppress(RPCError):  # the watch polls the pull request anyway
            await look_now(self.orders.client, merged.url)
        for _ in range(_LOOKS_AFTER_MERGE):
            if (task := await self.orders.get(order_id)).stage is not Stage.REVIEW:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        return TaskReply(task=task)

    async def restore(self, snapshot: str) -> RestoredReply:
        """Restore a snapshot of this host to a new folder below the state directory; Septet never removes it.

        Raises:
            RefusedTransitionError: The snapshot was restored before.
            NotFoundError: This host has no such snapshot.
        """
        from clients.disk.rescues import kept_snapshot, snapshot_named
        from septet.git.snapshots.restore import restore

        target = self.state.restores / snapshot

        def carry_out() -> RestoredReply:
            vault, stored = snapshot_named(self.state, self.git_env, snapshot)
            if target.exists() and any(target.iterdir()):
                remedy = "Look there, or move that folder away and restore it again."
                raise RefusedTransitionError(f"{snapshot} was already restored to {target}.", remedy=remedy)
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            restore(vault, stored, target)
            return RestoredReply(rescue=kept_snapshot(self.state, stored), restored_to=str(target))

        return await asyncio.to_thread(carry_out)

    def watch(self, order_id: str, *, patience: timedelta = timedelta(0)) -> "Watch":
        """Return the watch of a work order.

        Args:
            order_id: The work order.
            patience: How long the server may be away during the watch.
        """
        from clients.disk.workspace_view import WorkspaceView
        from clients.watch import Watch

        view = WorkspaceView(self.state, self.git_env, order_id)
        return Watch(self.orders, view, self.nobody_works_on, patience=patience)


async def connect_operations(settings: Settings, address: str | None = None) -> Operations:
    """Connect to the server of the settings, or to the one at `address`.

    Raises:
        ServerNotReachedError: Nobody answers there.
    """
    client = await connect(settings, address=address)
    return Operations(WorkOrders(client, settings.task_queue), StateDir(settings.state_dir), settings.git_env)
