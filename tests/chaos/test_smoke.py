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


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(400)
async def test_under_a_hand_that_kills_every_work_order_is_delivered_once_and_nothing_is_lost() -> None:
    """Workers, supervisors, agents, tools and proxies die; git, the forge and the system then show every law kept."""
    account = Account(await tried(Septet(), without_impossible(SMOKE)))
    assert broken(account) == (), evidence(account)
    assert account.all.runs == account.all.completed == SMOKE.runs
    assert account.all.agent_steps == 7 * SMOKE.runs
    assert account.all.tokens_counted > 0


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_a_budget_that_is_used_up_under_a_hand_that_kills_is_counted_once_and_waits_within_one_turn() -> (
    None
):
    """Budgets are reached again and again while workers and agents die: accounts count what agents have printed.

    Agents that reach one as they work are stopped.
    """
    account = Account(await tried(Septet("5ktok"), without_impossible(SMOKE)))
    assert broken(account) == (), evidence(account)
    assert account.all.completed == SMOKE.runs
    assert account.seen.raises >= SMOKE.runs
    assert sum(ledger.stopped for ledger in account.seen.ledgers) > 0
    assert account.all.tokens_counted > 5000 * SMOKE.runs
