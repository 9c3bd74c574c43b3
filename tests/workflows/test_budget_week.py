"""Days of work under a daily budget, on a server that skips time: a whole week before a release."""

from __future__ import annotations

import asyncio
import uuid
from random import Random
from typing import Final

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import start, worker_of
from fakes.skipped_time import skipping_time

from clients.temporal.budgets import BudgetClient
from septet.budgets.account import AccountState, LimitCall, ReserveCall, SettleCall
from septet.contracts.amounts import Spending
from septet.contracts.facts import Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from workers.watching.accounts import FleetAccounts
from workflows.budgets import Account

LIMIT: Final = 6.0
DEAREST: Final = 1.0


class Turns:
    """Agents' turns that reserve from the day's budget, and report their use twice."""

    def __init__(self, accounts: FleetAccounts) -> None:
        self._accounts = accounts
        self._random = Random(7)  # noqa: S311 -- repeated by its seed
        self.used: list[float] = []

    async def take(self, call: StepCall) -> StepResult:
        """Take a step within the budget, or end it as over budget."""
        key, order_id = uuid.uuid4().hex, call.workspace.work_order_id
        asked = ReserveCall(key=key, order_id=order_id, step=call.step.value)
        grant = await self._accounts.reserve(AccountState(scope="day"), asked, opens=False)
        assert grant is not None
        if grant.wait is not None:
            return ended(call, Verdict.OVER_BUDGET, grant.wait.message, budget_wait=grant.wait)
        self.used.append(round(self._random.uniform(0.5, 1.0) * min(DEAREST, grant.caps.usd or DEAREST), 6))
        word = SettleCall(key=key, used=Spending(usd=self.used[-1]))
        usage = Usage(cost_usd=self.used[-1])
        for _ in range(2):
            await self._accounts.settle("day", word)
        return done(call, usage=usage)


@pytest.mark.parametrize(("orders", "days"), [(5, 2), pytest.param(18, 7, marks=pytest.mark.release)])
async def test_daily_budgets_cost_each_day_their_limit_and_a_turn_at_most(orders: int, days: int) -> None:
    """Each use counts once although work orders wait for the next day, and each use is reported twice."""
    async with await skipping_time() as environment:
        client = environment.client
        doubles = Doubles(f"queue-{uuid.uuid4().hex}")
        turns = Turns(FleetAccounts(client, doubles.task_queue))
        doubles.steps = {step: [turns.take] for step in Step}
        async with worker_of(client, doubles, Account):
            budgets = BudgetClient(client, doubles.task_queue)
            await budgets.set("day", LimitCall(limit=f"{LIMIT}usd"))
            handles = [await start(client, doubles.task_queue) for _ in range(orders)]
            tasks = await asyncio.wait_for(asyncio.gather(*(handle.result() for handle in handles)), 120)
            view = (await budgets.show("day")).budget
    assert {task.status for task in tasks} == {"completed"}
    assert sum(task.usage.cost_usd or 0.0 for task in tasks) == pytest.approx(sum(turns.used), abs=0.001)
    assert view.total.usd == pytest.approx(sum(turns.used), abs=0.001)
    spent = [use.usd for _, use in (*view.days, ("today", view.today)) if use.turns]
    assert len(spent) >= days
    assert all(usd <= LIMIT + DEAREST for usd in spent), spent
