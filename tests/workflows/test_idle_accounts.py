"""Accounts without a call, on a server that skips time: the accounts end, and lose nothing by their end."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

from fakes.running import replayed, result_of
from fakes.skipped_time import skipping_time
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.turns.account_archive import read_ended_account
from clients.temporal.budgets import BudgetClient
from septet.budgets.account import AccountState, Caps, Hold, LimitCall, ReserveCall, SettleCall, account_id
from septet.contracts.amounts import Spending, parse_limit
from workers.watching.accounts import FleetAccounts
from workflows.budgets import Account

WITHIN_SECONDS = 60
LIMIT = parse_limit("1usd")
SPENT = Spending(usd=2.0)
AGENT_HOURS = 3


@workflow.defn(name="WorkOrder", sandboxed=False)
class WaitingOrder:
    """A work order that waits for its budget until the account calls it."""

    def __init__(self) -> None:
        self._is_called = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._is_called)

    @workflow.signal
    def budget_open(self, scope: str) -> None:
        del scope
        self._is_called = True


async def age_of(handle: WorkflowHandle[Any, Any], way: str = "") -> timedelta:
    """Wait until an account has ended, replay its history, and return how long it was open."""
    await result_of(handle)
    description = await handle.describe()
    assert description.close_time is not None
    await replayed(handle, way)
    return description.close_time - description.start_time


async def start(client: Client, queue: str, state: AccountState) -> WorkflowHandle[Any, Any]:
    return await client.start_workflow("Account", state, id=account_id(queue, state.scope), task_queue=queue)


async def test_an_account_ends_an_hour_after_its_work_order_and_not_while_an_agent_may_run() -> None:
    """The account ends by itself; it remembers a waiting work order and a lost turn, and does not wait for them."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with await skipping_time() as environment:
        client = environment.client
        ends_at = time.time() + timedelta(hours=AGENT_HOURS).total_seconds()  # each account has its own clock
        hold = Hold(key="turn-1", order_id="wo-lost", caps=Caps(usd=1.0), ends_at=ends_at)
        async with Worker(client, task_queue=queue, workflows=[Account, WaitingOrder]):
            quiet = await start(client, queue, AccountState(scope="order/wo-closed", limit=LIMIT, total=SPENT))
            lost = await start(client, queue, AccountState(scope="order/wo-lost", limit=LIMIT, holds=(hold,)))
            waits = AccountState(
                scope="order/wo-waits", limit=LIMIT, total=SPENT, waiting=("wo-waits",), to_call=()
            )
            waiting = await start(client, queue, waits)
            ages = [await age_of(quiet), await age_of(lost), await age_of(waiting, "budget/account-in-silence")]
            ended = await client.get_workflow_handle(lost.id, result_type=AccountState).result()
            order = await client.start_workflow(WaitingOrder.run, id="wo-waits", task_queue=queue)
            budgets = BudgetClient(client, queue)
            shown = (await budgets.show("wo-waits")).budget
            raised = (await budgets.raise_limit("wo-waits", LimitCall(limit="4usd"))).budget
            await result_of(order)
    assert [age // timedelta(hours=1) for age in ages] == [1, AGENT_HOURS, 1]
    assert ended.waits_for("turn-1")
    assert (shown.waiting, shown.total.usd, shown.limit) == (("wo-waits",), 2.0, "1usd")
    assert (raised.total.usd, raised.limit) == (2.0, "5usd")


async def test_the_next_word_opens_an_ended_account_and_counts_on() -> None:
    """A step of a retried work order finds the earlier use; the account of another scope is not open."""
    queue, scope = f"queue-{uuid.uuid4().hex}", "order/wo-1"
    async with await skipping_time() as environment:
        client = environment.client
        accounts = FleetAccounts(client, queue)
        asked = ReserveCall(key="turn-2", order_id="wo-1", so_far=Spending())
        async with Worker(client, task_queue=queue, workflows=[Account]):
            state = AccountState(scope=scope, limit=LIMIT, total=Spending(usd=0.75))
            await age_of(await start(client, queue, state))
            assert await accounts.is_open(scope)
            assert not await accounts.is_open("order/wo-2")
            grant = await accounts.reserve(AccountState(scope=scope), asked, opens=False)
    assert grant is not None
    assert grant.caps.usd == 0.25


async def test_whoever_opens_an_account_hours_after_the_look_opens_it_with_all_that_was_used_since() -> None:
    """A process that was stopped between read and start loses no dollar and no message."""
    queue = f"queue-{uuid.uuid4().hex}"
    old = AccountState(scope="order/wo-1", limit=LIMIT, total=Spending(usd=0.25))
    hold = Hold(key="turn-1", order_id="wo-1", ends_at=1.0)
    late = old.model_copy(update={"read_at": time.time() - timedelta(hours=2).total_seconds()})
    word = SettleCall(key="turn-1", used=Spending(usd=0.125))
    async with await skipping_time() as environment:
        client, accounts = environment.client, FleetAccounts(environment.client, queue)
        worker = Worker(client, task_queue=queue, workflows=[Account], activities=[read_ended_account])
        async with worker:
            for state in (old, old.model_copy(update={"total": Spending(usd=0.5), "holds": (hold,)})):
                await age_of(await start(client, queue, state))
            account = await client.start_workflow(
                "Account", late, id=account_id(queue, old.scope), task_queue=queue,
                start_signal="settle", start_signal_args=[word],
            )  # fmt: skip
            asked = ReserveCall(key="turn-2", order_id="wo-1")
            grant = await accounts.reserve(AccountState(scope=old.scope), asked, opens=False)
            await accounts.settle(old.scope, SettleCall(key="turn-2", used=Spending(usd=0.25)))
            await age_of(account)
            ended = await client.get_workflow_handle(account.id, result_type=AccountState).result()
    assert grant is not None
    assert grant.caps.usd == 0.375
    assert (ended.total.usd, ended.read_at) == (0.875, None)
