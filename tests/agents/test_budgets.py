"""Real CLIs at a used-up budget: they stop, the work order waits, and their session continues after a raise."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from fakes.model_day import ORDER_ID, Day
from fakes.model_stub import Fault
from fakes.model_wires import USED
from fakes.waiting import wait_until

from clients.temporal.budgets import BudgetClient
from clients.temporal.work_orders import WorkOrders
from septet.agents.outcomes.endings import BUDGET
from septet.agents.runs.usage import spent_in
from septet.budgets.account import LimitCall
from septet.contracts.amounts import Spending
from septet.contracts.names import Status, Step
from septet.contracts.order import StepSettings

pytestmark = pytest.mark.timeout(600)

Begun = Callable[[Day], AbstractAsyncContextManager[WorkOrders]]
PLENTY = "9Mtok,9usd,9h"


@pytest.mark.parametrize("cli", ["claude", pytest.param("opencode", marks=pytest.mark.release)], indirect=True)
async def test_tokens_that_are_used_up_stop_an_agent_after_its_message(day: Day, begun: Begun) -> None:
    """The budget stops the agent after its first message, for the model does not answer the second."""
    day.goes_wrong(Fault("build_plan", "hang", results=1))
    async with begun(day) as orders:
        await _stops_and_goes_on(day, orders, "1ktok", raised_by="9Mtok")
    first = day.runs_of("build_plan")[0].exit()
    assert first is not None
    assert (first.cause, first.why) == ("ended", BUDGET)


@pytest.mark.release
@pytest.mark.parametrize("cli", ["claude"], indirect=True)
async def test_dollars_that_are_used_up_end_claude_by_itself(day: Day, begun: Begun) -> None:
    """Claude itself ends after the request that passes the limit; its exit is no failure, and all answers count."""
    async with begun(day) as orders:
        total = await _stops_and_goes_on(day, orders, "0.001usd", raised_by="1usd")
    first = day.runs_of("build_plan")[0].exit()
    assert first is not None
    assert (first.cause, first.why) == ("exited", "")
    assert total.tokens == sum(USED.values()) * len(day.model.asked)


async def _stops_and_goes_on(day: Day, orders: WorkOrders, budget: str, *, raised_by: str) -> Spending:
    """Check that a step stops at its budget, resumes its session after a raise and is counted once; return the total."""
    steps = {Step.BUILD_PLAN: StepSettings(budget=budget)}
    await day.start(orders, plan_only=True, budget=PLENTY, steps=steps)
    waiting = await day.until(orders, lambda task: task.budget is not None)
    assert waiting.budget is not None
    assert (waiting.status, waiting.budget.step, waiting.error) == (Status.WAITING, "build_plan", None)
    assert "The budget of the step build_plan is used up" in waiting.budget.message
    day.model.faults.clear()  # the agent may stop before it meets a fault
    budgets = BudgetClient(orders.client, orders.task_queue)
    assert (await budgets.raise_limit(ORDER_ID, LimitCall(limit=raised_by, step="build_plan"))).is_raised
    task = await orders.wait(day.order_id)
    assert (task.status, task.error) == (Status.COMPLETED, None)
    first, second = (run.record for run in day.runs_of("build_plan"))
    assert first is not None
    assert second is not None
    assert second.resumed_from == next(told.session_id for told in task.steps if told.step == "build_plan")
    reply = await wait_until(lambda: budgets.show(ORDER_ID), lambda reply: reply.budget.running == 0)
    total, recorded = reply.budget.total, spent_in(day.runs.of(ORDER_ID))
    assert total.tokens == recorded.tokens
    assert total.usd == pytest.approx(recorded.cost_usd or 0.0)
    return total
