"""What budgets have left and which logins are paused, for Prometheus: looked up where metrics are served alone."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from activities.payloads import read_memo
from septet.agents.clis.registry import ADAPTERS
from septet.contracts.amounts import parse_limit
from septet.contracts.budget import DAY, PROJECT, AccountView, account_id
from septet.contracts.quota import MEMO, QuotaPause
from septet.telemetry.metrics import BUDGET_LIMIT, BUDGET_USED, BUDGET_WAITING, PAUSED_LOGINS
from septet.telemetry.recorder import RECORDER, Recorder
from workers.beside import beside, repeat

LOOK_SECONDS: Final = 60.0
_ANSWER_WITHIN_SECONDS: Final = 10.0
_MOST_PROJECTS: Final = 50
_MOST_PAUSES: Final = 1000


@asynccontextmanager
async def measuring_amounts(client: Client, task_queue: str, *, serves: bool) -> AsyncIterator[None]:
    """Measure budgets and pauses for as long as the block lasts, where this worker serves metrics."""
    if not serves:
        yield
        return
    look = AmountMetrics(client, task_queue).look
    async with beside(repeat(look, lambda: LOOK_SECONDS, "amounts_not_measured")):
        yield


@dataclass(slots=True)
class AmountMetrics:
    """The budgets of the day and of projects, and the paused logins, of one queue of work orders.

    Those of single work orders and pipelines have ids, and ids are no labels.
    """

    client: Client
    task_queue: str
    recorder: Recorder = field(default_factory=lambda: RECORDER)
    _agents: set[str] = field(default_factory=set)
    """Those of which a login was paused: they are told to have none once it is over."""
    _limits: dict[str, set[str]] = field(default_factory=dict)
    """By budget: the units that were limited; they are told to be unlimited once they are."""

    async def look(self) -> None:
        """Measure once.

        Raises:
            RPCError: The server refused.
        """
        await self._measure_pauses()
        scopes = [DAY, *await self._projects()]
        for scope in scopes:
            view = await self._ask(scope)
            if view is not None:
                self._record(view)

    async def _measure_pauses(self) -> None:
        query = f'WorkflowType="Quota" AND ExecutionStatus="Running" AND TaskQueue="{self.task_queue}"'
        agents: Counter[str] = Counter()
        async for row in self.client.list_workflows(query, limit=_MOST_PAUSES):
            pause = await read_memo(row, MEMO, QuotaPause)
            if pause is not None and pause.agent in ADAPTERS and pause.until > time.time():
                agents[pause.agent] += 1
        self._agents |= set(agents)
        for agent in self._agents:
            self.recorder.record(PAUSED_LOGINS, agents[agent], agent=agent)

    async def _projects(self) -> list[str]:
        prefix = account_id(self.task_queue, f"{PROJECT}/")
        query = f'WorkflowId STARTS_WITH "{prefix}" AND WorkflowType="Account" AND ExecutionStatus="Running"'
        rows = [row.id async for row in self.client.list_workflows(query, limit=_MOST_PROJECTS)]
        return [row.removeprefix(account_id(self.task_queue, "")) for row in rows]

    async def _ask(self, scope: str) -> AccountView | None:
        """Return a budget; `None` where there is none, or no worker answers for it now."""
        handle = self.client.get_workflow_handle(account_id(self.task_queue, scope))
        with suppress(TimeoutError, WorkflowQueryFailedError):
            async with asyncio.timeout(_ANSWER_WITHIN_SECONDS):
                try:
                    view: AccountView = await handle.query("account", result_type=AccountView)
                except RPCError as error:
                    if error.status is not RPCStatusCode.NOT_FOUND:
                        raise
                else:
                    return view.on(datetime.now(UTC).date().isoformat())
        return None

    def _record(self, view: AccountView) -> None:
        limits = parse_limit(view.limit).amounts if view.limit else {}
        for unit, used in view.spent.amounts.items():
            self.recorder.record(BUDGET_USED, used, budget=view.scope, unit=unit)
        limited = self._limits.setdefault(view.scope, set())
        limited |= set(limits)
        for unit in limited:
            self.recorder.record(BUDGET_LIMIT, limits.get(unit, math.inf), budget=view.scope, unit=unit)
        self.recorder.record(BUDGET_WAITING, view.waiting_count, budget=view.scope)
