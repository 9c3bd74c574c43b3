"""Days of work under daily budgets, on a server that skips time: a whole week before a release."""

from __future__ import annotations

import asyncio
import uuid
from random import Random
from typing import Any, Final

import pytest
from fakes.activities import Doubles, done, ended
from fakes.running import start, worker_of
from fakes.skipped_time import skipping_time
from temporalio.client import WorkflowHandle

from clients.temporal.budgets import BudgetClient
from septet.contracts.amounts import Spending
from septet.contracts.budget import AccountState, BudgetWait, Caps, LimitCall, ReserveCall, SettleCall
from septet.contracts.facts import Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from workers.watching.accounts import FleetAccounts
from workflows.budgets.account import Account

DAY: Final = "day"
PROJECT: Final = "project/o/app"
LIMIT: Final = 6.0
TOKENS: Final = 6000
LIMITS: Final = {DAY: f"{LIMIT}usd", PROJECT: f"{TOKENS}tok/day"}
DEAREST: Final = 1.0
LONGEST: Final = 1000


class Turns:
    """Agents' turns that reserve from two budgets; `used` has the use of each turn by its key."""

    def __init__(self, accounts: FleetAccounts) -> None:
        self._accounts = accounts
        self._random = Random(7)  # noqa: S311 -- repeated by its seed
        self.used: dict[str, Spending] = {}

    async def take(self, call: StepCall) -> StepResult:
        """Take a step within its budgets, or end it as over budget; some agents crash half-way and reserve again."""
        key = f"{call.workspace.work_order_id}/{call.step}/{len(self.used)}"
        asked = ReserveCall(key=key, order_id=call.workspace.work_order_id, step=call.step.value)
        room = await self._reserve(asked)
        if isinstance(room, BudgetWait):
            return ended(call, Verdict.OVER_BUDGET, room.message, budget_wait=room)
        used = self.used[key] = Spending(
            usd=round(self._random.uniform(0.5, 1.0) * min(DEAREST, room.usd or DEAREST), 6),
            tokens=round(self._random.uniform(0.5, 1.0) * min(LONGEST, room.tokens or LONGEST)),
        )
        if self._random.random() < 0.3:
            half = Spending(usd=round(used.usd / 2, 6), tokens=used.tokens // 2)
            again = await self._reserve(asked.model_copy(update={"so_far": half}))
            if isinstance(again, BudgetWait):
                self.used[key] = half
                return ended(call, Verdict.OVER_BUDGET, again.message, budget_wait=again, usage=_usage(half))
        for _ in range(2):
            await self._settle(SettleCall(key=key, used=used))
        return done(call, usage=_usage(used))

    async def _reserve(self, call: ReserveCall) -> Caps | BudgetWait:
        """Reserve from one account after the other; if one has no room, settle the turn with all accounts."""
        caps = Caps()
        for scope in LIMITS:
            grant = await self._accounts.reserve(AccountState(scope=scope), call, opens=False)
            assert grant is not None
            if grant.wait is not None:
                await self._settle(SettleCall(key=call.key, used=call.so_far))
                return grant.wait
            caps = caps.lowered(grant.caps)
        return caps

    async def _settle(self, call: SettleCall) -> None:
        for scope in LIMITS:
            await self._accounts.settle(scope, call)


def _usage(used: Spending) -> Usage:
    return Usage(cost_usd=used.usd, output_tokens=used.tokens)


@pytest.mark.parametrize(("orders", "days"), [(5, 2), pytest.param(18, 7, marks=pytest.mark.release)])
async def test_daily_budgets_cost_each_day_their_limit_and_a_turn_at_most(orders: int, days: int) -> None:
    """Each use counts once although work orders wait for the next day, agents crash, and each use is reported twice.

    The day is limited in dollars, and the project in tokens.
    """
    async with await skipping_time() as environment:
        client = environment.client
        doubles = Doubles(f"queue-{uuid.uuid4().hex}")
        turns = Turns(FleetAccounts(client, doubles.task_queue))
        doubles.steps = {step: [turns.take] for step in Step}
        worker = worker_of(client, doubles, Account)
        async with worker:
            budgets = BudgetClient(client, doubles.task_queue)
            for scope, limit in LIMITS.items():
                await budgets.set(scope, LimitCall(limit=limit))
            handles: list[WorkflowHandle[Any, Any]] = [
                await start(client, doubles.task_queue) for _ in range(orders)
            ]
            tasks = await asyncio.wait_for(asyncio.gather(*(handle.result() for handle in handles)), 120)
            views = {scope: (await budgets.show(scope)).budget for scope in LIMITS}
    assert {task.status for task in tasks} == {"completed"}
    usd = sum(used.usd for used in turns.used.values())
    tokens = sum(used.tokens for used in turns.used.values())
    assert sum(task.usage.cost_usd or 0.0 for task in tasks) == pytest.approx(usd, abs=0.001)
    assert sum(task.usage.tokens for task in tasks) == tokens
    spent: dict[str, list[Spending]] = {}
    for scope, view in views.items():
        assert view.total.usd == pytest.approx(usd, abs=0.001)
        assert view.total.tokens == tokens
        spent[scope] = [use for _, use in (*view.days, ("today", view.today)) if use.turns]
        assert len(spent[scope]) >= days
    assert all(use.usd <= LIMIT + DEAREST for use in spent[DAY]), spent
    assert all(use.tokens <= TOKENS + LONGEST for use in spent[PROJECT]), spent
