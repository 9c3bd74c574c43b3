"""Accounts of budgets on a real server: workers ask them, and work orders wait for them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fakes.activities import Doubles, done, ended
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer, Worker

from clients.temporal.budgets import BudgetClient
from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.budget import AccountState, Grant, LimitCall, ReserveCall, SettleCall
from septet.contracts.facts import Usage
from septet.contracts.names import Stage, Status, Step, Verdict
from septet.contracts.quota import QuotaPause, quota_id
from septet.contracts.steps import StepCall, StepResult
from septet.contracts.task import Task
from septet.errors import NotFoundError, RefusedTransitionError
from workers.accounts import FleetAccounts
from workers.plugin import SeptetPlugin
from workflows.account import Account
from workflows.pull_request import PullRequestWorkflow
from workflows.quota import Quota
from workflows.work_order import WorkOrder

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_SECONDS = 60
ORDER = "order/wo-1"


class Fleet:
    """Steps that ask the account of their work order, as activities do, and use a dollar each."""

    def __init__(self, client: Client, task_queue: str, limit: str) -> None:
        self.accounts = FleetAccounts(client, task_queue)
        self.limit = limit

    async def step(self, call: StepCall) -> StepResult:
        order_id, key = call.workspace.work_order_id, f"{call.step}-{uuid.uuid4().hex}"
        opening = AccountState(scope=f"order/{order_id}", limit=parse_limit(self.limit))
        asked = ReserveCall(key=key, order_id=order_id, step=call.step.value)
        grant = await self.accounts.reserve(opening, asked, opens=True)
        assert grant is not None
        if grant.wait is not None:
            return ended(call, Verdict.OVER_BUDGET, grant.wait.message, budget_wait=grant.wait)
        await self.accounts.settle(opening.scope, SettleCall(key=key, used=Spending(usd=1.0)))
        return done(call, usage=Usage(cost_usd=1.0))


@asynccontextmanager
async def fleet(client: Client) -> AsyncIterator[tuple[Doubles, BudgetClient]]:
    doubles = Doubles(f"queue-{uuid.uuid4().hex}")
    worker = Worker(
        client,
        task_queue=doubles.task_queue,
        workflows=[WorkOrder, PullRequestWorkflow, Account, Quota],
        activities=doubles.activities(),
    )
    async with worker:
        yield doubles, BudgetClient(client, doubles.task_queue)


async def replay(handle: WorkflowHandle[Any, Any]) -> None:
    history = await handle.fetch_history()
    await Replayer(workflows=[WorkOrder, Account, Quota], plugins=[SeptetPlugin()]).replay_workflow(history)


async def test_a_work_order_waits_for_its_budget_and_continues_when_it_is_raised(client: Client) -> None:
    """It says which budget it waits for and by which command it goes on, counts each turn once, and replays."""
    async with fleet(client) as (doubles, budgets):
        own = Fleet(client, doubles.task_queue, "3usd")
        doubles.steps = {step: [own.step] for step in Step}
        order_id = f"wo-{uuid.uuid4().hex[:8]}"
        handle: WorkflowHandle[Any, Any] = await client.start_workflow(
            "WorkOrder",
            {"repository": "/app", "title": "Totals are wrong", "budget": "3usd"},
            id=order_id,
            task_queue=doubles.task_queue,
            result_type=Task,
        )
        task = await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.budget is not None)
        assert (task.status, task.stage) == (Status.WAITING, Stage.EXECUTING)
        assert not task.waits_for_a_decision
        assert f"septet budget raise order/{order_id} 5usd" in task.question
        assert doubles.calls_of(Step.CLASSIFY_ISSUE)[0].budget == "3usd"
        assert (await budgets.show(order_id)).budget.waiting == (order_id,)
        raised = (await budgets.raise_limit(order_id, LimitCall(limit="4usd"))).budget
        assert raised.limit == "7usd"
        task = await asyncio.wait_for(handle.result(), WITHIN_SECONDS)
        assert (task.status, task.budget, task.usage.cost_usd) == (Status.COMPLETED, None, 7.0)
        view = (await budgets.show(order_id)).budget
        assert (view.total.usd, view.total.turns, view.waiting_count) == (7.0, 7, 0)
        await replay(handle)
        account = client.get_workflow_handle(f"{doubles.task_queue}-budget/order/{order_id}")
        await replay(account)


async def test_a_work_order_without_a_budget_has_no_trace_of_one(client: Client) -> None:
    """Nobody starts an account for it, and its history has no event more."""
    async with fleet(client) as (doubles, _):
        order = {"repository": "/app", "title": "Totals are wrong"}
        handle: WorkflowHandle[Any, Any] = await client.start_workflow(
            "WorkOrder", order, id=f"wo-{uuid.uuid4().hex[:8]}", task_queue=doubles.task_queue, result_type=Task
        )
        await asyncio.wait_for(handle.result(), WITHIN_SECONDS)
        assert "budget-gate" not in (await handle.fetch_history()).to_json()
        asked = ReserveCall(key="k", order_id=handle.id)
        accounts = FleetAccounts(client, doubles.task_queue)
        assert await accounts.reserve(AccountState(scope=f"order/{handle.id}"), asked, opens=False) is None


async def test_a_budget_is_set_raised_and_listed(client: Client) -> None:
    """What there is not cannot be raised; what is not a limit is refused in plain words."""
    async with fleet(client) as (_, budgets):
        with pytest.raises(NotFoundError, match="no budget of day"):
            await budgets.raise_limit("day", LimitCall(limit="5usd"))
        assert (await budgets.set("day", LimitCall(limit="5usd"))).budget.limit == "5usd/day"
        assert (await budgets.set("project/o/r", LimitCall(limit="9usd"))).budget.limit == "9usd"
        handle = budgets.client.get_workflow_handle(f"{budgets.task_queue}-budget/day")
        with pytest.raises(Exception, match="failed") as refused:
            await handle.execute_update("raise_limit", {"limit": "much"})
        assert "raise_limit: limit" in str(refused.value.__cause__)
        scopes = await wait_until(
            budgets.list,
            lambda answer: {each.scope for each in answer.budgets} == {"day", "project/o/r"},
        )
        assert scopes.ok


async def test_hundreds_of_words_go_from_run_to_run_and_lose_nothing(client: Client) -> None:
    """An account that continues as new knows what was used before, and who asks meanwhile has an answer."""
    async with fleet(client) as (doubles, budgets):
        accounts, opening = FleetAccounts(client, doubles.task_queue), AccountState(scope="day")
        await budgets.set("day", LimitCall(limit="1000usd"))

        async def turn(number: int) -> None:
            asked = ReserveCall(key=f"turn-{number}", order_id=f"wo-{number}", step="build_plan")
            grant: Grant | None = await accounts.reserve(opening, asked, opens=True)
            assert grant is not None
            assert grant.granted
            await accounts.settle("day", SettleCall(key=asked.key, used=Spending(usd=0.01)))

        for first in range(0, 60, 6):
            await asyncio.gather(*(turn(number) for number in range(first, first + 6)))
        await wait_until(lambda: budgets.show("day"), lambda answer: answer.budget.total.turns == 60)
        assert (await budgets.show("day")).budget.total.usd == pytest.approx(0.6)


async def test_a_refusal_names_the_budget(client: Client) -> None:
    """A scope that nobody could mean is not asked for."""
    async with fleet(client) as (_, budgets):
        with pytest.raises((NotFoundError, RefusedTransitionError)):
            await budgets.show("wo-nobody")


async def test_a_paused_login_is_known_to_every_host_until_its_limit_begins_anew(client: Client) -> None:
    """The pause is read without a worker, grows by a later word, and ends by itself."""
    async with fleet(client) as (doubles, _):
        one, other = (FleetAccounts(client, doubles.task_queue) for _ in range(2))
        assert await other.find_pause("login") is None
        await one.note_pause("login", QuotaPause(agent="claude", until=time.time() + 1.0, message="limit reached"))
        found = await other.find_pause("login")
        assert found is not None
        assert found.message == "limit reached"
        later = QuotaPause(agent="claude", until=time.time() + 3.0)
        await other.note_pause("login", later)
        await wait_until(
            lambda: one.find_pause("login"), lambda pause: pause is not None and pause.until == later.until
        )
        await wait_until(lambda: one.find_pause("login"), lambda pause: pause is None)
        assert await one.find_pause("another") is None
        await replay(client.get_workflow_handle(quota_id(doubles.task_queue, "login")))
