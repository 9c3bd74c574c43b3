"""Read what the agents of each project have cost, and estimate the cost of new work orders."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from clients.executions.messages import COSTS, WorkflowCalls, server_refusals
from septet.contracts.amounts import Spending
from septet.contracts.costs import EARLIER, MOST_TOGETHER, CostGroup, CostHistory, Estimate, costs_id
from septet.contracts.names import CostKey
from septet.contracts.replies import CostsReply
from septet.costs.cost_book import first_week
from septet.costs.estimate import Question, estimate_costs
from septet.errors import NotFoundError, SealedError, ServerNotReachedError

_ANSWER_WITHIN_SECONDS: Final = 10.0
"""The longest wait for the answer of one history of costs, which a worker may first have to replay."""
_ESTIMATE_WITHIN_SECONDS: Final = 3.0
"""The longest wait for an estimate; after this time, the estimate is unknown."""
_UNKNOWN: Final = "Estimate: unknown."
_NO_ANSWER: Final = "The history of costs did not answer in time; workers answer for it."


@dataclass(frozen=True, slots=True)
class CostClient:
    """Reads the costs of one task queue's work orders, and estimates the costs of new ones."""

    client: Client
    task_queue: str = "septet"

    async def show(self, by: CostKey, since: str = "", project: str = "") -> CostsReply:
        """Return what agents used, grouped by `by`: weeks in order, other groups with the highest cost first.

        `since` is the first week to count, or an age such as `4w`; all weeks when empty.

        Raises:
            InvalidInputError: `since` is neither a week nor an age.
            ServerNotReachedError: The server or a history did not answer.
        """
        since = first_week(since, datetime.now(UTC).date())
        with server_refusals():
            histories = [*filter(None, [await self._ask(project)])] if project else await self._all()
        sums: dict[str, Spending] = {}
        scripted = False
        for history in histories:
            for row in history.rows:
                if not since or (row.week >= since and row.week != EARLIER):
                    name = history.project if by == "project" else getattr(row, by)
                    scripted = scripted or row.agent == "scripted"
                    sums[name] = sums.get(name, Spending()).plus(row.use)
        groups = [CostGroup(name=name, use=use) for name, use in sums.items()]
        if by == "week":
            groups.sort(key=lambda group: (group.name != EARLIER, group.name))
        else:
            groups.sort(key=lambda group: (-group.use.usd, -group.use.tokens, group.name))
        total = Spending()
        for use in sums.values():
            total = total.plus(use)
        return CostsReply(by=by, since=since, costs=tuple(groups), total=total, scripted=scripted)

    async def estimate(self, question: Question) -> Estimate:
        """Estimate the cost of the work in `question` from earlier costs; unknown if these are not read in 3 s."""
        try:
            async with asyncio.timeout(_ESTIMATE_WITHIN_SECONDS):
                own = await self._ask(question.project)
                estimate = estimate_costs(question, own)
                if estimate.is_known:
                    return estimate
                others = [each for each in await self._all(MOST_TOGETHER) if each.project != question.project]
                return estimate_costs(question, own, others)
        except SealedError as error:
            return Estimate(text=f"{_UNKNOWN} {error.message}")
        except (TimeoutError, RPCError, ServerNotReachedError):
            return Estimate(text=f"{_UNKNOWN} {_NO_ANSWER}")

    async def _all(self, limit: int | None = None) -> Sequence[CostHistory]:
        query = f'WorkflowType="Costs" AND ExecutionStatus="Running" AND TaskQueue="{self.task_queue}"'
        prefix, at_once = costs_id(self.task_queue, ""), asyncio.Semaphore(20)

        async def ask(project: str) -> CostHistory | None:
            async with at_once:
                return await self._ask(project)

        rows = [row.id async for row in self.client.list_workflows(query, limit=limit)]
        histories = await asyncio.gather(*(ask(row.removeprefix(prefix)) for row in rows))
        return [history for history in histories if history is not None]

    async def _ask(self, project: str) -> CostHistory | None:
        """Return a project's history of costs; `None` if the project has no history."""
        handle = self.client.get_workflow_handle(costs_id(self.task_queue, project))
        try:
            return await WorkflowCalls(handle, COSTS).query("costs", CostHistory, _ANSWER_WITHIN_SECONDS)
        except NotFoundError:
            return None
