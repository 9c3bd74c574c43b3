from dataclasses import replace

import pytest

from bench.chaos.__main__ import without_impossible
from bench.chaos.account import Account
from bench.chaos.laws import broken
from bench.chaos.plan import Plan
from bench.chaos.report import evidence
from bench.chaos.side import Septet
from bench.chaos.trial import tried

pytestmark = pytest.mark.law

SMOKE = Plan(
    runs=3,
    at_once=3,
    seed=7,
    kinds=("worker", "supervisor", "agent", "tool", "proxy"),
    step_seconds=1.5,
    patience_seconds=240,
)


SHARED = replace(SMOKE, runs=2, at_once=2, sessions="shared", step_seconds=0.3)
"""Short turns, so that kills also hit the time between turns."""


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(400)
async def test_under_a_hand_that_kills_every_work_order_is_delivered_once_and_nothing_is_lost() -> None:
    """Workers, supervisors, agents, tools and proxies die; git, the forge and the system then show that each law holds."""
    account = Account(await tried(Septet(), without_impossible(SMOKE)))
    assert broken(account) == (), evidence(account)
    assert account.all.runs == account.all.completed == SMOKE.runs
    assert account.all.agent_steps == 7 * SMOKE.runs
    assert account.all.tokens_counted > 0


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(400)
async def test_a_budget_that_is_used_up_under_a_hand_that_kills_is_counted_once_and_waits_within_one_turn() -> (
    None
):
    """Budgets are reached repeatedly while workers and agents die: accounts count the use that agents have printed.

    An agent that reaches a budget during its work is stopped.
    """
    plan = replace(SMOKE, runs=2, at_once=2, budget="5ktok")
    account = Account(await tried(Septet(plan.budget), without_impossible(plan)))
    assert broken(account) == (), evidence(account)
    assert account.all.completed == plan.runs
    assert account.all.budgets_raised >= plan.runs
    assert any(ledger.stopped for ledger in account.seen.ledgers)
    assert account.all.tokens_counted > 5000 * plan.runs


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(400)
async def test_the_two_processes_of_shared_sessions_outlive_workers_and_proxies() -> None:
    """Kills hit work and the time between turns: each turn is taken once, by the planner's process or the implementor's."""
    plan = replace(SHARED, kinds=("worker", "restart", "proxy"), every_seconds=1.0, kills_at_most=4)
    account = Account(await tried(Septet(), without_impossible(plan)))
    assert broken(account) == (), evidence(account)
    assert account.all.agent_starts == account.all.agent_steps == 7 * plan.runs
    assert account.all.agent_processes == 2 * plan.runs


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_process_of_shared_sessions_that_dies_between_two_turns_costs_no_turn() -> None:
    """Agents, supervisors, tools and the server die too, and budgets run out: each law holds, and each turn is paid once."""
    plan = replace(SHARED, runs=4, at_once=4, kinds=(*SMOKE.kinds, "restart", "server"), patience_seconds=400)
    plan = replace(plan, budget="5ktok")
    account = Account(await tried(Septet(plan.budget), without_impossible(plan)))
    assert broken(account) == (), evidence(account)
    assert account.all.completed == plan.runs
    assert account.all.budgets_raised >= plan.runs
    assert account.all.agent_processes > 2 * plan.runs
