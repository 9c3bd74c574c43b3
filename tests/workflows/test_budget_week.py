"""Days of work under a daily budget, on a server that skips time; `make budget-week` has a whole week of them."""

from __future__ import annotations

import asyncio
import os
import uuid
from random import Random
from typing import Any, Final

from fakes.activities import Doubles, done, ended
from fakes.skipped_time import skipping_time
from temporalio.client import WorkflowHandle
from temporalio.worker import Worker

from clients.temporal.budgets import BudgetClient
from septet.contracts.amounts import Spending
from septet.contracts.budget import AccountState, LimitCall, ReserveCall, SettleCall
from septet.contracts.facts import Usage
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from workers.accounts import FleetAccounts
from workflows.account import Account
from workflows.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

ORDERS: Final = int(os.environ.get("BUDGET_WEEK_ORDERS", "5"))
LIMIT: Final = 6.0
DEAREST: Final = 1.0


async def test_a_week_under_a_daily_budget_costs_each_day_its_limit_and_a_turn_at_most() -> None:
    """Work orders wait for the next day, agents crash half-way, each word is told twice, and every cost counts once."""
    async with await skipping_time() as environment:
        client, random, costs = environment.client, Random(7), dict[str, float]()  # noqa: S311 -- repeated by its seed
        doubles = Doubles(f"queue-{uuid.uuid4().hex}")
        accounts = FleetAccounts(client, doubles.task_queue)

        async def paid_step(call: StepCall) -> StepResult:
            key = f"{call.workspace.work_order_id}/{call.step}/{len(costs)}"
            asked = ReserveCall(key=key, order_id=call.workspace.work_order_id, step=call.step.value)
            grant = await accounts.reserve(AccountState(scope="day"), asked, opens=False)
            assert grant is not None
            if grant.wait is not None:
                return ended(call, Verdict.OVER_BUDGET, grant.wait.message, budget_wait=grant.wait)
            cost = costs[key] = round(random.uniform(0.5, 1.0) * min(DEAREST, grant.caps.usd or DEAREST), 6)
            if random.random() < 0.3:  # the agent crashes half-way, and asks again before it is resumed
                half = asked.model_copy(update={"so_far": Spending(usd=round(cost / 2, 6))})
                again = await accounts.reserve(AccountState(scope="day"), half, opens=False)
                assert again is not None
                if again.wait is not None:
                    costs[key] = half.so_far.usd
                    usage = Usage(cost_usd=costs[key])
                    return ended(
                        call, Verdict.OVER_BUDGET, again.wait.message, budget_wait=again.wait, usage=usage
                    )
            settled = SettleCall(key=key, used=Spending(usd=cost))
            await accounts.settle("day", settled)
            await accounts.settle("day", settled)
            return done(call, usage=Usage(cost_usd=cost))

        doubles.steps = {step: [paid_step] for step in Step}
        worker = Worker(
            client,
            task_queue=doubles.task_queue,
            workflows=[WorkOrder, PullRequestWorkflow, Account],
            activities=doubles.activities(),
        )
        async with worker:
            budgets = BudgetClient(client, doubles.task_queue)
            await budgets.set("day", LimitCall(limit=f"{LIMIT}usd"))
            handles: list[WorkflowHandle[Any, Any]] = [
                await client.start_workflow(
                    "WorkOrder",
                    {"repository": "/app", "title": "Totals are wrong"},
                    id=f"wo-{uuid.uuid4().hex[:8]}",
                    task_queue=doubles.task_queue,
                    result_type=Task,
                )
                for _ in range(ORDERS)
            ]
            tasks = await asyncio.wait_for(asyncio.gather(*(handle.result() for handle in handles)), 120)
            view = (await budgets.show("day")).budget
    assert {task.status for task in tasks} == {"completed"}
    assert abs(view.total.usd - sum(costs.values())) < 0.001
    assert abs(sum(task.usage.cost_usd or 0.0 for task in tasks) - sum(costs.values())) < 0.001
    days = [spent for _, spent in (*view.days, ("today", view.spent))]
    assert len([day for day in days if day.turns]) >= ORDERS // 2
    assert all(day.usd <= LIMIT + DEAREST for day in days)
