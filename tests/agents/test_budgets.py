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
from septet.contracts.amounts import Spending
from septet.contracts.budget import LimitCall
from septet.contracts.names import Status, Step
from septet.contracts.order import StepSettings
from septet.contracts.task import Task

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


@pytest.mark.release
async def test_minutes_that_are_used_up_stop_an_agent(day: Day, begun: Begun) -> None:
    """The budget stops an agent whose model is silent, also a CLI that reports usage only at its end."""
    day.goes_wrong(Fault("build_plan", "hang", results=1))
    async with begun(day) as orders:
        await _stops_and_goes_on(day, orders, f"{day.soon_seconds / 60:.3f}min", raised_by="2h")
    first = day.runs_of("build_plan")[0].exit()
    assert first is not None
    assert (first.cause, first.why) == ("ended", BUDGET)


@pytest.mark.release
@pytest.mark.parametrize("cli", ["codex", "gemini"], indirect=True)
async def test_tokens_that_are_reported_at_the_end_keep_the_next_agent_from_its_start(
    day: Day, begun: Begun
) -> None:
    """The step that passes the limit is done, and the next step starts no agent before the raise."""
    async with begun(day) as orders:
        await day.start(orders, plan_only=True, budget="1ktok")
        task = await day.until(orders, lambda task: task.budget is not None)
        assert task.status == Status.WAITING
        assert [run.record.step for run in day.runs.of(ORDER_ID) if run.record] == ["classify_issue"]
        await _raise(orders, LimitCall(limit="9Mtok"))
        task = await orders.wait(day.order_id)
        assert (task.status, task.error) == (Status.COMPLETED, None)
        await _counts_all(day, orders)


async def _stops_and_goes_on(day: Day, orders: WorkOrders, budget: str, *, raised_by: str) -> Spending:
    """Check that a step stops at its budget and resumes its session after a raise; return the spending."""
    steps = {Step.BUILD_PLAN: StepSettings(budget=budget)}
    await day.start(orders, plan_only=True, budget=PLENTY, steps=steps)
    waiting = await day.until(orders, lambda task: task.budget is not None)
    assert waiting.budget is not None
    assert (waiting.status, waiting.budget.step, waiting.error) == (Status.WAITING, "build_plan", None)
    assert "The budget of the step build_plan is used up" in waiting.budget.message
    day.model.faults.clear()  # the agent may stop before it meets a fault
    await _raise(orders, LimitCall(limit=raised_by, step="build_plan"))
    task = await orders.wait(day.order_id)
    assert (task.status, task.error) == (Status.COMPLETED, None)
    first, second = (run.record for run in day.runs_of("build_plan"))
    assert first is not None
    assert second is not None
    assert second.resumed_from == _session_of(task, "build_plan")
    return await _counts_all(day, orders)


def _session_of(task: Task, step: str) -> str | None:
    return next(told.session_id for told in task.steps if told.step == step)


async def _raise(orders: WorkOrders, call: LimitCall) -> None:
    reply = await BudgetClient(orders.client, orders.task_queue).raise_limit(ORDER_ID, call)
    assert reply.is_raised


async def _counts_all(day: Day, orders: WorkOrders) -> Spending:
    """Wait until the account holds the recorded usage of all runs once; return the account's total."""
    budgets = BudgetClient(orders.client, orders.task_queue)
    reply = await wait_until(lambda: budgets.show(ORDER_ID), lambda reply: reply.budget.running == 0)
    total, recorded = reply.budget.total, spent_in(day.runs.of(ORDER_ID))
    assert total.tokens == recorded.tokens
    assert total.usd == pytest.approx(recorded.cost_usd or 0.0)
    return total
