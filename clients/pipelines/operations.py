"""Check, start, estimate and show pipelines."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.pipelines.client import PipelineClient, pipeline_id_of_key
from clients.pipelines.rows import work_ahead
from clients.starting.agents import (
    agents_asked_for,
    check_forge_key,
    check_worker_agents,
    first_agent,
    worker_agents,
)
from clients.starting.checks import checked_pipeline
from clients.temporal.costs import CostClient
from clients.temporal.work_orders import WorkOrders
from septet.contracts.costs import Estimate
from septet.contracts.order import WorkOrderInput
from septet.costs.estimate import WHOLE, Question, WorkAhead
from septet.errors import SeptetError
from septet.forges.choose import forge_for
from septet.forges.local.forge import LocalForge
from septet.git.engine.address import parse_address, with_project
from septet.pipelines.inputs import PipelineInput, PipelineIssue, ReadIssues
from septet.pipelines.issues import merge_issues, order_issues, read_issues
from septet.pipelines.views import (
    DryRunIssue,
    PipelineDryRunReply,
    PipelineReply,
    PipelineRun,
    PipelineView,
)
from septet.settings import Settings
from workers.watching.announced_agents import AnnouncedAgents

_ANY_TITLE: Final = "One issue"
PipelineAgents = tuple[str, str]
"""The names of the planner's and the executor's agent; a name is empty if no worker announced a default."""


@dataclass(frozen=True, slots=True)
class PipelineOperations:
    """Checks, starts, estimates and shows pipelines; raises the errors that `Operations` names."""

    orders: WorkOrders
    pipelines: PipelineClient
    costs: CostClient
    git_env: Mapping[str, str]
    is_here: bool
    """Whether the workers are on this machine, so that folders can be checked."""

    async def start(self, order: PipelineInput, pipeline_id: str | None = None, *, key: str = "") -> PipelineReply:
        """Check a pipeline for mistakes, start it, and estimate its cost.

        With a key the start is idempotent, and a repeat is not checked again.

        Raises:
            InvalidInputError: The repository or an agent does not exist, the id is invalid, or issues depend on
                each other in a circle.
            NotFoundError: The repository is on this machine and lacks the branch or an issue.
            AgentMissingError: The planner or the executor is an agent that no worker can use.
            AlreadyRunningError: The id was used before, or the key was used with another input.
        """
        if key and await self.pipelines.exists(pipeline_id or pipeline_id_of_key(key)):
            order = checked_pipeline(order, is_here=False)
            agents = await self._agents(order)
        else:
            order, agents = await self.prepare(order)
        reply, estimate = await asyncio.gather(
            self.pipelines.start(order, pipeline_id, key=key),
            self.estimate(order, agents, (WHOLE,) * len(order.issues)),
        )
        return reply.model_copy(update={"estimate": estimate})

    async def prepare(self, order: PipelineInput) -> tuple[PipelineInput, PipelineAgents]:
        """Check a pipeline for mistakes, and return the checked pipeline and its agents.

        Raises:
            SeptetError: As for `start`.
        """
        order = checked_pipeline(order, is_here=self.is_here)
        await asyncio.to_thread(self._check_issues, order)
        default, hosts = await self._look_at(order)
        roles = [agent for role in (order.planner, order.executor) for agent in ((role,) if role else default)]
        fallback = () if order.fallback_agent is None else (order.fallback_agent,)
        await check_worker_agents(self.orders.client, hosts, (*roles, *fallback))
        check_forge_key(hosts, order.repository)
        agent = first_agent(default, hosts)
        return order, (order.planner or agent, order.executor or agent)

    def _check_issues(self, order: PipelineInput) -> None:
        """Refuse issue numbers that are missing or closed in a repository on this disk."""
        order_issues(order.issue_list)  # a mistake in the list itself is reported first
        numbers = tuple(str(issue.number) for issue in order.issue_list if issue.number is not None)
        path = parse_address(order.repository, home=Path.home()).path if self.is_here else None
        if path is not None and numbers:
            request = ReadIssues(repository=order.repository, ids=numbers)
            read_issues(LocalForge(path, self.git_env), request)

    async def _look_at(self, order: PipelineInput) -> tuple[Sequence[str | None], Sequence[AnnouncedAgents]]:
        each = WorkOrderInput(repository=order.repository, base=order.base, agent=order.agent, title=_ANY_TITLE)
        look = asyncio.to_thread(agents_asked_for, each, self.git_env, is_here=self.is_here)
        return await asyncio.gather(look, worker_agents(self.orders.client, self.orders.task_queue))

    async def estimate(
        self, order: PipelineInput, agents: PipelineAgents, work: Sequence[WorkAhead], *, is_rest: bool = False
    ) -> Estimate:
        """Return the estimated cost of a pipeline, derived from the costs of earlier work orders.

        `work`: what each issue still needs; empty before the issues are read. `is_rest`: whether work has begun.
        """
        if not work:
            text = f"Estimate: unknown. The issues labelled {order.label} are not read yet."
            return Estimate(issues=0, text=text)
        each = WorkOrderInput(repository=order.repository, title=_ANY_TITLE, project=order.project)
        planner, executor = agents
        question = Question(
            project=with_project(each).project or "",
            agent=executor,
            planner=planner,
            model=order.model or "",
            work=tuple(work),
            of_pipeline=True,
            is_rest=is_rest,
        )
        return await self.costs.estimate(question)

    async def show(self, pipeline_id: str) -> PipelineReply:
        """Return a pipeline with the state of each issue, and the estimated cost of issues without a result."""
        reply = await self.pipelines.show(pipeline_id)
        return reply.model_copy(update={"estimate": await self.estimate_rest(reply.pipeline)})

    async def estimate_rest(self, view: PipelineView) -> Estimate | None:
        """Return the estimated cost of a pipeline's open issues; `None` without these, or if closed or stuck."""
        work = work_ahead(view.issues)
        if not work or view.closed_at is not None or view.stuck:
            return None
        order = await self.pipelines.input_of(PipelineRun, view.id)
        if order is None:
            return None
        return await self.estimate(order, await self._agents(order), work, is_rest=True)

    async def dry_run(self, order: PipelineInput, settings: Settings) -> PipelineDryRunReply:
        """Check a pipeline without starting it, and return its agents, issues and estimated cost.

        Raises:
            SeptetError: The pipeline would be refused, or its issues cannot be read.
        """
        order, agents = await self.prepare(order)
        issues = order_issues(await asyncio.to_thread(_read_issues, order, settings))
        planner, executor = agents
        return PipelineDryRunReply(
            repository=order.repository,
            planner=planner,
            executor=executor,
            executors=order.executors,
            one_branch=order.one_branch,
            issues=tuple(DryRunIssue(id=each.id, title=each.title, depends_on=each.depends_on) for each in issues),
            estimate=await self.estimate(order, agents, (WHOLE,) * len(issues)),
        )

    async def _agents(self, order: PipelineInput) -> PipelineAgents:
        """Return the agents of a pipeline that was started before."""
        default: Sequence[str | None] = ()
        hosts: Sequence[AnnouncedAgents] = ()
        with suppress(SeptetError):  # the repository has changed since
            default, hosts = await self._look_at(order)
        agent = first_agent(default, hosts)
        return order.planner or agent, order.executor or agent


def _read_issues(order: PipelineInput, settings: Settings) -> list[PipelineIssue]:
    """Return the pipeline's issues; read those with a number, or with the pipeline's label, from the forge."""
    numbers = tuple(str(issue.number) for issue in order.issue_list if issue.number is not None)
    if not numbers and order.label is None:
        return list(order.issue_list)
    forge = forge_for(parse_address(order.repository, home=Path.home()), settings)
    request = ReadIssues(repository=order.repository, ids=numbers, label=order.label)
    return merge_issues(order.issue_list, read_issues(forge, request))
