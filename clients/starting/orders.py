"""Check, estimate and start work orders; check and add intakes."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.starting.agents import (
    agents_asked_for,
    check_forge_key,
    check_worker_agents,
    first_agent,
    worker_agents,
)
from clients.starting.checks import check_agents, check_folder, check_start, checked_order
from clients.starting.repository_path import with_host
from clients.starting.tracked_issue import expect_team, find_order, id_of_issue, with_issue_of
from clients.temporal.costs import CostClient
from clients.temporal.intakes import IntakeClient
from clients.temporal.work_orders import WorkOrders, id_of_key
from septet.contracts.costs import Estimate
from septet.contracts.intake import IntakeInput, IntakeReply
from septet.contracts.names import ORDER_ID
from septet.contracts.order import WorkOrderInput
from septet.contracts.replies import StartReply
from septet.contracts.task import Task
from septet.contracts.tracker import team_page
from septet.costs.estimate import REST_STEPS, Question, WorkAhead
from septet.errors import AlreadyRunningError, SeptetError
from septet.git.engine.address import parse_address, with_project
from septet.git.engine.place import find_record
from septet.settings import load_settings
from septet.state import StateDir

KEPT: Final = "Its work on this host is kept: septet rescue list {id}"


async def was_used(state: StateDir, order_id: str) -> bool:
    """Return whether this host has a record of a work order's workspace, even if Temporal deleted the workflow."""
    is_id = ORDER_ID.fullmatch(order_id) is not None
    return is_id and await asyncio.to_thread(find_record, state, order_id) is not None


@dataclass(frozen=True, slots=True)
class Starting:
    """Checks, estimates and starts work orders, and adds intakes, on one Temporal namespace."""

    orders: WorkOrders
    costs: CostClient
    intakes: IntakeClient
    state: StateDir
    git_env: Mapping[str, str]
    is_here: bool
    """Whether the workers are on this machine, so that folders can be checked."""

    async def add_intake(self, intake: IntakeInput) -> IntakeReply:
        """Check an intake for mistakes, and add it.

        Raises:
            InvalidInputError: The repository or the agent does not exist, or a setting for a tracker is missing.
            AlreadyRunningError: Another intake takes these issues already.
        """
        intake = intake.model_copy(update={"repository": with_host(intake.repository)})
        check_agents((intake.agent,))
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

        The input's stage decides whether the work order waits on the board first. Calls with the same `key` and
        input return the same work order.

        Raises:
            InvalidInputError: The repository, the agent, or a work order in `after` does not exist.
            AgentMissingError: No worker can use the work order's agent.
            AlreadyRunningError: The id was used before, or the issue has an open work order.
            TrackerError, TrackerUnavailableError: The issue's tracker refused or did not answer.
        """
        if key:
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
        """Start a work order as `start` does, but do not wait for a worker.

        Returns:
            The work order as its input describes it, and the asyncio task that estimates the work order's cost.

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
        """Return the estimated cost of a work order, derived from the costs of earlier work orders."""
        look = asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here)
        agents, hosts = await asyncio.gather(look, worker_agents(self.orders.client, self.orders.task_queue))
        return await self._estimate_for(order, first_agent(agents, hosts))

    async def _estimate_for(self, order: WorkOrderInput, agent: str) -> Estimate:
        project = with_project(order).project or ""
        return await self.costs.estimate(Question(project=project, agent=agent, model=order.model or ""))

    async def estimate_rest(self, task: Task) -> Estimate | None:
        """Return the estimated cost of the steps after a plan; `None` unless the plan waits for a decision.

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
        """Check a work order for mistakes as `start` does, and return the checked work order.

        Raises:
            SeptetError: As for `start`.
        """
        order, order_id = await self.find_order(order, order_id, again=again)
        return (await self._prepare(order, order_id, again=again))[0]

    async def _prepare(
        self, order: WorkOrderInput, order_id: str | None, *, again: bool
    ) -> tuple[WorkOrderInput, str]:
        """Return the result of `prepare` and the agent's name, which is empty if the agent is not known."""
        order = checked_order(order, is_here=self.is_here)
        if order_id and await was_used(self.state, order_id) and not await self.orders.exists(order_id):
            message = f"The id {order_id} was used before, by a work order that was deleted from Temporal."
            raise AlreadyRunningError(message, remedy=f"Choose another id. {KEPT.format(id=order_id)}")
        agents, _, hosts = await asyncio.gather(
            asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here),
            check_start(self.orders, order, order_id, again=again),
            worker_agents(self.orders.client, self.orders.task_queue),
        )
        named = agents if order.fallback_agent is None else (*agents, order.fallback_agent)
        await check_worker_agents(self.orders.client, hosts, named)
        check_forge_key(hosts, order.repository)
        return order, first_agent(agents, hosts)

    async def _prepare_repeat(self, order: WorkOrderInput, order_id: str) -> tuple[WorkOrderInput, str]:
        """Return the same as `_prepare`, but without checks, for a work order that was started before."""
        first = await self.orders.input_of(WorkOrderInput, order_id) if order.tracker is not None else None
        order = checked_order(with_issue_of(order, first) if first is not None else order, is_here=False)
        agents: Sequence[str | None] = ()
        with suppress(SeptetError):  # the repository has changed since
            agents = await asyncio.to_thread(agents_asked_for, order, self.git_env, is_here=self.is_here)
        return order, first_agent(agents, await worker_agents(self.orders.client, self.orders.task_queue))

    @staticmethod
    async def find_order(
        order: WorkOrderInput, order_id: str | None, *, again: bool
    ) -> tuple[WorkOrderInput, str | None]:
        """Return a work order and its id; if the work order names a tracker's issue, read the issue there."""
        if order.tracker is None:
            return order, order_id
        return await asyncio.to_thread(find_order, order, order_id, load_settings(), again=again)
