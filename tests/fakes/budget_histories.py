"""A work order that waits for its budget, its account, a login's pause and a project's costs: recorded histories."""

import asyncio
import uuid
from typing import Any, Final

from fakes.activities import Doubles, done, ended
from fakes.skipped_time import skipping_time
from fakes.waiting import wait_until
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import Worker

from clients.temporal.budgets import BudgetClient
from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.budget import (
    MOST_WAITING,
    AccountState,
    LimitCall,
    QuotaPause,
    ReserveCall,
    SettleCall,
    account_id,
    quota_id,
)
from septet.contracts.costs import CostHistory, CostNote, CostNotes, costs_id
from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepCall, StepResult
from workers.watching.accounts import FleetAccounts
from workflows.budgets.account import Account
from workflows.budgets.costs import Costs
from workflows.budgets.quota import Quota
from workflows.pull_request.pull_request import PullRequestWorkflow
from workflows.work_order import WorkOrder

_SILENT: Final = "account-in-silence"
_FULL: Final = "account-full"
BUDGETS: Final = (*("order-over-budget", "account", "account-of-steps", _FULL, _SILENT, "quota", "costs"),)
_ORDER: Final = "wo-over-budget"
_WITHIN_SECONDS: Final = 60.0


async def history_of_budget(client: Client, name: str) -> WorkflowHistory:
    """Let a work order meet its budget of three dollars, raise that, and return the history of one of the workflows."""
    if name == _SILENT:
        return await _account_in_silence()
    doubles = Doubles(f"budget-histories-{uuid.uuid4().hex[:8]}")
    accounts = FleetAccounts(client, doubles.task_queue)

    async def step(call: StepCall) -> StepResult:
        """Ask as an attempt does, and use a dollar."""
        opening = AccountState(scope=f"order/{_ORDER}", limit=parse_limit("3usd"))
        key = f"{call.step}-{len(doubles.calls_of(call.step))}"
        grant = await accounts.reserve(opening, ReserveCall(key=key, order_id=_ORDER, step=call.step), opens=True)
        if grant is not None and grant.wait is not None:
            return ended(call, Verdict.OVER_BUDGET, grant.wait.message, budget_wait=grant.wait)
        await accounts.settle(opening.scope, SettleCall(key=key, used=Spending(usd=1.0)))
        return done(call)

    doubles.steps = {each: [step] for each in Step}
    workflows = [WorkOrder, PullRequestWorkflow, Account, Quota, Costs]
    async with Worker(client, task_queue=doubles.task_queue, workflows=workflows, activities=doubles.activities()):
        account = client.get_workflow_handle(account_id(doubles.task_queue, f"order/{_ORDER}"))
        handles = {
            "order-over-budget": await _order_over_budget(client, doubles.task_queue),
            "account": account,
            "account-of-steps": await _shared_step(client, accounts, doubles.task_queue),
            _FULL: await _full_account(client, accounts, doubles.task_queue),
            "quota": await _quota(client, accounts, doubles.task_queue),
            "costs": await _costs(client, doubles.task_queue),
        }
        return await handles[name].fetch_history()


async def _order_over_budget(client: Client, task_queue: str) -> WorkflowHandle[Any, Any]:
    handle: WorkflowHandle[Any, Any] = await client.start_workflow(
        "WorkOrder",
        {"repository": "/app", "title": "Totals are wrong", "budget": "3usd"},
        id=f"{_ORDER}",
        task_queue=task_queue,
    )
    await wait_until(lambda: handle.query(WorkOrder.work_order), lambda task: task.budget is not None)
    await BudgetClient(client, task_queue).raise_limit(_ORDER, LimitCall(limit="9usd"))
    await asyncio.wait_for(handle.result(), _WITHIN_SECONDS)
    return handle


async def _shared_step(client: Client, accounts: FleetAccounts, task_queue: str) -> WorkflowHandle[Any, Any]:
    """Let agents of one step hold its whole limit in a project's account, and another one wait for one of them."""
    opening = AccountState(scope="project/o/r", step_limits={Step.BUILD_PLAN: parse_limit("1usd/day")})
    keys = [f"turn-{number}" for number in range(11)]
    for key in keys:
        asked = ReserveCall(key=key, order_id=f"wo-{key}", step=Step.BUILD_PLAN)
        grant = await accounts.reserve(opening, asked, opens=True)
    await accounts.settle(opening.scope, SettleCall(key=keys[0], used=Spending(usd=0.1)))
    handle = client.get_workflow_handle(account_id(task_queue, opening.scope))
    await wait_until(lambda: handle.query(Account.account), lambda view: not view.waiting)
    assert grant is not None
    assert grant.wait is not None
    return handle


async def _full_account(client: Client, accounts: FleetAccounts, task_queue: str) -> WorkflowHandle[Any, Any]:
    """Let a work order ask for a budget for which as many wait as an account lists."""
    waiting = tuple(f"wo-{number}" for number in range(MOST_WAITING))
    spent, limit = Spending(usd=3.0), parse_limit("3usd")
    opening = AccountState(scope="project/o/full", limit=limit, total=spent, waiting=waiting, to_call=())
    grant = await accounts.reserve(opening, ReserveCall(key="late", order_id="wo-late"), opens=True)
    assert grant is not None
    assert not grant.is_listed
    return client.get_workflow_handle(account_id(task_queue, opening.scope))


async def _account_in_silence() -> WorkflowHistory:
    """Let nobody say a word any more to the account of a work order that closed as it waited."""
    queue = "budget-histories-in-silence"
    scope, spent = f"order/{_ORDER}", Spending(usd=3.0)
    state = AccountState(scope=scope, limit=parse_limit("3usd"), total=spent, waiting=(_ORDER,), to_call=())
    async with await skipping_time() as environment:
        client = environment.client
        async with Worker(client, task_queue=queue, workflows=[Account]):
            handle: WorkflowHandle[Any, Any] = await client.start_workflow(
                "Account", state, id=account_id(queue, state.scope), task_queue=queue
            )
            await asyncio.wait_for(handle.result(), _WITHIN_SECONDS)
        return await handle.fetch_history()


async def _quota(client: Client, accounts: FleetAccounts, task_queue: str) -> WorkflowHandle[Any, Any]:
    for until in (1.0, 2.0):  # over already: it ends at once
        await accounts.note_pause("login", QuotaPause(agent="claude", until=until, message="the limit is reached"))
    handle = client.get_workflow_handle(quota_id(task_queue, "login"))
    await asyncio.wait_for(handle.result(), _WITHIN_SECONDS)
    return handle


async def _costs(client: Client, task_queue: str) -> WorkflowHandle[Any, Any]:
    handle = client.get_workflow_handle(costs_id(task_queue, "o/r"))
    for number in (1, 2):
        note = CostNote(order_id="wo-1", key="1", step="build_plan", agent="claude", use=Spending(usd=number))
        await client.start_workflow(
            "Costs",
            CostHistory(project="o/r"),
            id=costs_id(task_queue, "o/r"),
            task_queue=task_queue,
            start_signal="note",
            start_signal_args=[CostNotes(notes=(note,))],
        )
        await handle.query(Costs.costs)
    return handle
