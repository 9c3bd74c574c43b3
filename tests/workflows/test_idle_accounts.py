"""Accounts of which nobody says a word for months, on a server that skips time."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from fakes.skipped_time import skipping_time
from temporalio import workflow
from temporalio.client import WorkflowHandle
from temporalio.worker import Replayer, Worker

from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.budget import AccountState, Caps, Hold, account_id
from workers.plugin import SeptetPlugin
from workflows.account import Account

WITHIN_SECONDS = 60
LIMIT = parse_limit("1usd")
HOLD = Hold(key="turn-1", order_id="wo-lost", caps=Caps(usd=1.0))
SPENT = Spending(usd=2.0)
STATES = [
    AccountState(scope="order/wo-closed", limit=LIMIT, total=SPENT, waiting=("wo-closed",), to_call=()),
    AccountState(scope="order/wo-waits", limit=LIMIT, total=SPENT, waiting=("wo-waits",), to_call=()),
    AccountState(scope="order/wo-lost", limit=LIMIT, total=SPENT, holds=(HOLD,), to_call=()),
]


@workflow.defn(name="WorkOrder", sandboxed=False)
class WaitingOrder:
    """A work order that waits for its budget until it is called."""

    def __init__(self) -> None:
        self._is_called = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._is_called)

    @workflow.signal
    def budget_open(self, scope: str) -> None:
        del scope
        self._is_called = True


async def test_an_account_ends_though_its_work_order_closed_as_it_waited_or_its_host_was_lost() -> None:
    """Who waits is called after 45 days without a word: one who lives asks again, and nobody else is waited for."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with await skipping_time() as environment:
        client = environment.client
        worker = Worker(client, task_queue=queue, workflows=[Account, WaitingOrder])
        async with worker:
            order = await client.start_workflow(WaitingOrder.run, id="wo-waits", task_queue=queue)
            accounts: list[WorkflowHandle[Any, Any]] = [
                await client.start_workflow("Account", state, id=account_id(queue, state.scope), task_queue=queue)
                for state in STATES
            ]
            ends = asyncio.gather(*(each.result() for each in (order, *accounts)))
            await asyncio.wait_for(ends, WITHIN_SECONDS)
        ages = []
        for handle in accounts:
            description = await handle.describe()
            assert description.close_time is not None
            ages.append(description.close_time - description.start_time)
            await Replayer(workflows=[Account], plugins=[SeptetPlugin()]).replay_workflow(
                await handle.fetch_history()
            )
    assert [age // timedelta(days=1) for age in ages] == [90, 90, 45]
