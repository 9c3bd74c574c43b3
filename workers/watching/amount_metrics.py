"""Metrics of budgets, paused logins and unserved work; only one worker process reports them to Prometheus."""

import asyncio
import math
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from activities.host.payloads import read_memo
from septet.agents.clis.registry import ADAPTERS
from septet.budgets.account import DAY, PROJECT, AccountView, account_id
from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.pauses import MEMO, QuotaPause
from septet.settings import Settings
from septet.state import StateDir
from septet.system.durable import take_lock
from septet.telemetry.metrics import BUDGET_LIMIT, BUDGET_USED, BUDGET_WAITING, PAUSED_LOGINS, UNSERVED
from septet.telemetry.recorder import RECORDER, Recorder
from workers.beside import beside, repeat
from workers.builds.deployment import Deployment
from workers.builds.promotion import builds_with_workers, opens_workspaces
from workers.watching.heard_hosts import HeardHosts

LOOK_SECONDS: Final = 60.0
_WORK: Final = ("decisions", "openings")


@asynccontextmanager
async def measuring_amounts(
    client: Client, settings: Settings, state: StateDir, hosts: HeardHosts | None
) -> AsyncIterator[None]:
    """Measure budgets, pauses and unserved work while the block runs, whenever this process may report."""
    if settings.metrics is None:
        yield
        return
    with MetricsTurn(state.metrics_lock, hosts) as turn:
        metrics = AmountMetrics(client, settings.task_queue, is_ours=turn.is_ours)
        async with beside(repeat(metrics.look, turn.pause_seconds, "amounts_not_measured")):
            yield


@dataclass(slots=True)
class MetricsTurn:
    """Decides whether this process may report: only one process may, on the first living host with metrics.

    If the server does not list workers, one process of each host may.
    """

    lock: Path
    heard: HeardHosts | None
    _held: int | None = None

    def __enter__(self) -> Self:
        """Return this object; only `is_ours` takes the right to report."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Let another process of the host report."""
        self._give_back()

    def is_ours(self) -> bool:
        """Return whether this process may report now; take the right to report if it is free."""
        if self.heard is not None and not self.heard.speaks(time.monotonic(), with_metrics=True):
            self._give_back()
        elif self._held is None:
            self._held = take_lock(self.lock)
        return self._held is not None

    def pause_seconds(self) -> float:
        """Return the seconds until the next measurement, or the next try for the right to report."""
        return LOOK_SECONDS if self._held is not None or self.heard is None else self.heard.interval_seconds

    def _give_back(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


@dataclass(slots=True)
class AmountMetrics:
    """Records metrics for one queue of work orders: the budgets of the day and of projects, and paused logins.

    Budgets of single work orders and pipelines are left out, because their ids would make too many labels.
    """

    client: Client
    task_queue: str
    recorder: Recorder = field(default_factory=lambda: RECORDER)
    is_ours: Callable[[], bool] = lambda: True
    _agents: set[str] = field(default_factory=set)
    """The agents that had a paused login; after the pause, 0 is recorded for such an agent."""
    _limits: dict[str, set[str]] = field(default_factory=dict)
    """For each budget, the units with a limit; when a limit is removed, infinity is recorded."""
    _views: dict[str, tuple[tuple[str, int], AccountView]] = field(default_factory=dict)
    """For each budget: the account's run and history length, which show a change, and the account's last view."""
    _has_told: bool = False
    """Whether this process has recorded a value for unserved work."""

    async def look(self) -> None:
        """Measure once if this process may report, else withdraw its recorded values.

        Raises:
            RPCError: The server refused.
        """
        if not self.is_ours():
            self._forget()
            return
        await self._measure_service()
        await self._measure_pauses()
        prefix = account_id(self.task_queue, f"{PROJECT}/")
        query = f'WorkflowId STARTS_WITH "{prefix}" AND WorkflowType="Account" AND ExecutionStatus="Running"'
        rows = [row.id async for row in self.client.list_workflows(query, limit=50)]
        for scope in (DAY, *(row.removeprefix(account_id(self.task_queue, "")) for row in rows)):
            view = await self._ask(scope)
            if view is not None:
                limits = parse_limit(view.limit).amounts if view.limit else {}
                for unit, used in view.spent.amounts.items():
                    self.recorder.record(BUDGET_USED, used, budget=view.scope, unit=unit)
                limited = self._limits.setdefault(view.scope, set())
                limited |= set(limits)
                for unit in limited:
                    self.recorder.record(BUDGET_LIMIT, limits.get(unit, math.inf), budget=view.scope, unit=unit)
                self.recorder.record(BUDGET_WAITING, view.waiting_count, budget=view.scope)

    def _forget(self) -> None:
        """Record NaN for each value, because another process measures now and old values would look current."""
        for work in _WORK if self._has_told else ():
            self.recorder.record(UNSERVED, math.nan, work=work)
        for agent in self._agents:
            self.recorder.record(PAUSED_LOGINS, math.nan, agent=agent)
        for scope, limited in self._limits.items():
            for unit in Spending().amounts:
                self.recorder.record(BUDGET_USED, math.nan, budget=scope, unit=unit)
            for unit in limited:
                self.recorder.record(BUDGET_LIMIT, math.nan, budget=scope, unit=unit)
            self.recorder.record(BUDGET_WAITING, math.nan, budget=scope)
        self._agents, self._limits, self._views, self._has_told = set(), {}, {}, False

    async def _measure_service(self) -> None:
        """Record whether the current build has a worker, and whether any host opens workspaces."""
        deployment = Deployment(self.client, self.task_queue)
        routing, builds, opens = await asyncio.gather(
            deployment.routing(), builds_with_workers(deployment), opens_workspaces(deployment)
        )
        for work, is_served in zip(_WORK, (routing.current in builds, opens), strict=True):
            self.recorder.record(UNSERVED, float(not is_served), work=work)
        self._has_told = True

    async def _measure_pauses(self) -> None:
        query = f'WorkflowType="Quota" AND ExecutionStatus="Running" AND TaskQueue="{self.task_queue}"'
        agents: Counter[str] = Counter()
        async for row in self.client.list_workflows(query, limit=1000):
            pause = await read_memo(row, MEMO, QuotaPause)
            if pause is not None and pause.agent in ADAPTERS and pause.until > time.time():
                agents[pause.agent] += 1
        self._agents |= set(agents)
        for agent in self._agents:
            self.recorder.record(PAUSED_LOGINS, agents[agent], agent=agent)

    async def _ask(self, scope: str) -> AccountView | None:
        """Return what a budget's account reports; `None` if there is no account or no worker answers now.

        An unchanged budget is not queried again, because a query costs money and Temporal's `describe` does not.
        """
        handle = self.client.get_workflow_handle(account_id(self.task_queue, scope))
        with suppress(TimeoutError, WorkflowQueryFailedError):
            async with asyncio.timeout(10.0):
                try:
                    now = await handle.describe()
                    at, view = self._views.get(scope, (None, None))
                    if view is None or at != (now.run_id, now.history_length):
                        view = await handle.query("account", result_type=AccountView)
                        self._views[scope] = (now.run_id, now.history_length), view
                except RPCError as error:
                    if error.status is not RPCStatusCode.NOT_FOUND:
                        raise
                else:
                    return view.on(datetime.now(UTC).date().isoformat())
        return None
