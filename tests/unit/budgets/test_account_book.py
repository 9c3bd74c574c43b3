"""The grants and counts of a budget's account."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.budgets.account import AccountState, Caps, Hold, LimitCall, ReserveCall, SettleCall
from septet.budgets.account_book import AccountBook
from septet.contracts.amounts import BudgetWait, Spending, parse_limit

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
STEP = "implement_plan"


def book(limit: str, scope: str = "order/wo-1") -> AccountBook:
    return AccountBook(AccountState(scope=scope, limit=parse_limit(limit)))


def reserve(key: str, order: str = "wo-1", so_far: float = 0.0, step: str = STEP) -> ReserveCall:
    return ReserveCall(key=key, order_id=order, step=step, so_far=Spending(usd=so_far))


def settle(key: str, usd: float) -> SettleCall:
    return SettleCall(key=key, used=Spending(usd=usd, tokens=100))


def refused(account: AccountBook, call: ReserveCall) -> BudgetWait:
    wait = account.reserve(call, NOON).wait
    assert wait is not None
    return wait


def test_what_is_left_is_held_and_over_the_limit_one_waits() -> None:
    """The last turn may exceed the limit; the next turn waits, with the command that raises the limit."""
    account = book("5usd")
    assert account.reserve(reserve("a"), NOON).caps == Caps(usd=5.0)
    account.settle(settle("a", 3.0), NOON)
    assert account.reserve(reserve("b"), NOON).caps == Caps(usd=2.0)
    account.settle(settle("b", 2.5), NOON)
    wait = refused(account, reserve("c"))
    assert "5.50 of 5.00 USD" in wait.message
    assert wait.remedy == "Raise it: `septet budget raise order/wo-1 5usd`."
    assert account.view.waiting == ("wo-1",)
    assert account.take_callers(NOON) == []
    account.set_limit(LimitCall(limit="1usd"), raises=True)
    assert (account.view.limit, account.view.remedy) == ("6usd", "")
    assert account.take_callers(NOON) == ["wo-1"]
    assert account.reserve(reserve("c"), NOON).caps == Caps(usd=0.5)


def test_the_same_word_again_counts_nothing_twice() -> None:
    """A repeated reservation holds one turn, and a repeated settlement counts nothing."""
    account = book("5usd")
    account.reserve(reserve("a"), NOON)
    account.reserve(reserve("a"), NOON)
    account.reserve(reserve("a", so_far=1.0), NOON)
    account.settle(settle("a", 2.0), NOON)
    account.settle(settle("a", 2.0), NOON)
    assert account.view.total.usd == 2.0
    account.reserve(reserve("a", so_far=2.0), NOON)
    account.settle(settle("a", 2.5), NOON)
    assert account.view.total.usd == 2.5
    assert account.view.running == 0


def test_a_daily_limit_begins_anew_at_midnight() -> None:
    """Waiting work orders are called at midnight, and the last 31 days are kept with their sums."""
    account = book("5usd/day", "day")
    account.reserve(reserve("a"), NOON)
    account.settle(settle("a", 5.0), NOON)
    assert refused(account, reserve("b")).until == "2026-03-10T00:00:00.000Z"
    assert account.day_ends_in(NOON) == timedelta(hours=12)
    midnight = NOON + timedelta(hours=12)
    assert account.take_callers(midnight) == ["wo-1"]
    assert account.reserve(reserve("b"), midnight).granted
    assert account.view.days[-1] == ("2026-03-09", Spending(usd=5.0, tokens=100, turns=1))
    assert account.view.spent == Spending()
    for day in range(100):
        account.take_callers(midnight + timedelta(days=day))
    assert len(account.state.days) == 31


def test_a_budget_is_seen_as_it_is_today_before_its_account_hears_of_the_day() -> None:
    """A reader sees the new day's use as zero before the account has begun the day."""
    account = book("5usd/day", "day")
    account.reserve(reserve("a"), NOON)
    account.settle(settle("a", 5.0), NOON)
    used = Spending(usd=5.0, tokens=100, turns=1)
    for today in ("2026-03-08", "2026-03-09"):  # a reader whose clock is behind sees the account's own day
        view = account.view.on(today)
        assert (view.spent, view.today, view.today_by_step, view.days) == (used, used, {STEP: used}, ())
    view = account.view.on("2026-03-10")
    assert (view.spent, view.today, view.today_by_step) == (Spending(), Spending(), {})
    assert (view.days, view.total, view.by_step) == ((("2026-03-09", used),), used, {STEP: used})
    account.take_callers(NOON + timedelta(days=1))
    assert account.view == view
    account.set_limit(LimitCall(limit="9usd"), raises=False)
    total = AccountBook(account.state.model_copy(update={"scope": "project/o/r", "limit": parse_limit("9usd")}))
    assert total.view.on("2026-03-11").spent == used


def test_a_limit_of_a_step_holds_that_step_alone() -> None:
    """A step with a used-up limit waits with the command that raises this limit, while another step continues."""
    account = book("50usd")
    limited = reserve("a").model_copy(update={"step_limit": parse_limit("3usd")})
    assert account.reserve(limited, NOON).caps == Caps(usd=3.0)
    account.settle(settle("a", 3.0), NOON)
    assert "`septet budget raise order/wo-1 3usd --step implement_plan`" in refused(account, reserve("b")).remedy
    assert account.reserve(reserve("c", step="create_commit"), NOON).granted
    account.set_limit(LimitCall(limit="2usd", step=STEP), raises=True)
    assert account.reserve(reserve("b"), NOON).caps == Caps(usd=2.0)


def test_a_daily_limit_of_a_step_begins_anew_at_midnight() -> None:
    """Work orders that wait for a step's daily limit are called at midnight and get a grant."""
    account = book("50usd")
    limited = reserve("a").model_copy(update={"step_limit": parse_limit("3usd/day")})
    assert account.reserve(limited, NOON).caps == Caps(usd=3.0)
    account.settle(settle("a", 3.0), NOON)
    wait = refused(account, reserve("b"))
    assert (wait.until, "It resets at midnight UTC." in wait.remedy) == ("2026-03-10T00:00:00.000Z", True)
    assert account.take_callers(NOON) == []
    assert account.day_ends_in(NOON) == timedelta(hours=12)
    midnight = NOON + timedelta(hours=12)
    assert account.take_callers(midnight) == ["wo-1"]
    assert account.reserve(reserve("b"), midnight).caps == Caps(usd=3.0)
    assert account.view.by_step[STEP].usd == 3.0
    assert account.view.today_by_step == {}


def test_who_waits_for_what_others_hold_is_called_as_they_end() -> None:
    """A refusal calls no work order; the end of a turn does, and so does a while without such an end."""
    account = book("10usd", "project/o/r")
    for key in ("a", "b", "c"):
        account.reserve(reserve(key, order=key), NOON)
    account.settle(settle("a", 6.0), NOON)
    assert account.take_callers(NOON) == []
    assert not refused(account, reserve("d", order="d")).is_spent
    assert (account.take_callers(NOON), account.calls_again) == ([], True)
    account.note_time()
    assert account.take_callers(NOON) == ["d"]
    assert not account.reserve(reserve("d", order="d"), NOON).granted
    assert account.take_callers(NOON) == []
    account.settle(settle("b", 0.5), NOON)
    assert account.take_callers(NOON) == ["d"]


@pytest.mark.parametrize("limits", [{"limit": parse_limit("5usd")}, {"step_limits": {STEP: parse_limit("5usd")}}])
def test_who_waits_for_what_others_hold_is_called_once_as_that_is_used_up(limits: dict[str, Any]) -> None:
    """When the held amount is used up, the waiting work order is called once, to report the wait to people."""
    account = AccountBook(AccountState(scope="pipeline/pl-1", **limits))
    account.reserve(reserve("a", "wo-a"), NOON)
    while (grant := account.reserve(reserve("b", "wo-b"), NOON)).granted:
        account.settle(settle("b", 1.0), NOON)
    assert grant.wait is not None
    assert not grant.wait.is_spent
    account.take_callers(NOON)  # a smaller request may have room
    assert not account.reserve(reserve("b", "wo-b"), NOON).granted
    assert account.take_callers(NOON) == []
    account.settle(settle("a", 5.0), NOON)
    assert account.take_callers(NOON) == ["wo-b"]
    assert refused(account, reserve("b", "wo-b")).is_spent
    assert account.take_callers(NOON) == []
    assert not account.calls_more


def test_a_new_run_of_an_account_that_is_used_up_calls_once_who_was_not_called_before() -> None:
    """A new run of the account calls a waiting work order that the run before did not call, and only once."""
    account = book("5usd", "pipeline/pl-1")
    account.reserve(reserve("a", "wo-a"), NOON)
    while account.reserve(reserve("b", "wo-b"), NOON).granted:
        account.settle(settle("b", 1.0), NOON)
    account.settle(settle("a", 5.0), NOON)
    following = AccountBook(account.state)
    assert following.take_callers(NOON) == ["wo-b"]
    assert not following.reserve(reserve("b", "wo-b"), NOON).granted
    assert following.take_callers(NOON) == []
    assert AccountBook(following.state).take_callers(NOON) == []
    earlier_release = following.state.model_copy(update={"to_call": None})
    assert AccountBook(earlier_release).take_callers(NOON) == ["wo-b"]


def test_a_limit_that_somebody_has_removed_is_not_brought_again() -> None:
    """A removed limit stays removed, although each turn names the limit of the settings."""
    account = book("1usd")
    limits = {"limit": parse_limit("1usd"), "step_limit": parse_limit("3usd")}
    account.reserve(reserve("a").model_copy(update=limits), NOON)
    account.settle(settle("a", 3.0), NOON)
    assert not account.reserve(reserve("b").model_copy(update=limits), NOON).granted
    account.set_limit(LimitCall(limit=" None "), raises=False)
    account.set_limit(LimitCall(limit="none", step=STEP), raises=False)
    assert (account.view.limit, account.view.step_limits) == ("", {})
    assert account.take_callers(NOON) == ["wo-1"]
    again = AccountBook(AccountState.model_validate_json(account.state.model_dump_json()))
    assert again.reserve(reserve("b").model_copy(update=limits), NOON).caps == Caps()
    again.set_limit(LimitCall(limit="9usd"), raises=False)
    again.set_limit(LimitCall(limit="8usd", step=STEP), raises=False)
    assert again.reserve(reserve("b").model_copy(update=limits), NOON).caps == Caps(usd=5.0)
    message, remedy = again.find_mistake(LimitCall(limit="none"))
    assert (message, remedy) == ("`none` is not an amount.", "Remove it with `septet budget set order/wo-1 none`.")


def test_an_account_that_has_only_the_limit_of_a_step_takes_the_limit_that_a_turn_brings() -> None:
    """A limit of a step set before the first agent does not remove the budget's own limit."""
    account = AccountBook(AccountState(scope="day", step_limits={STEP: parse_limit("9usd/day")}))
    limited = reserve("a", step="build_plan").model_copy(update={"limit": parse_limit("1usd/day")})
    assert account.reserve(limited, NOON).granted
    assert account.view.limit == "1usd/day"


def test_a_budget_is_raised_in_its_own_kind() -> None:
    """A raise must be in a unit of the limit, and the remedy names an amount in the used-up unit."""
    account = book("1tok,9usd")
    account.reserve(reserve("a").model_copy(update={"step_limit": parse_limit("3min")}), NOON)
    account.settle(settle("a", 3.0), NOON)
    assert account.reserve(reserve("b"), NOON).wait is not None
    assert account.view.remedy == "`septet budget raise order/wo-1 100tok`"
    assert account.find_mistake(LimitCall(limit="1usd,2tok")) == ("", "")
    message, remedy = account.find_mistake(LimitCall(limit="5min"))
    assert message == "The budget of order/wo-1 is 9usd,1tok, and cannot be raised by 5min."
    assert "such as 9usd,1tok" in remedy
    assert account.find_mistake(LimitCall(limit="5min", step=STEP)) == ("", "")
    message, remedy = account.find_mistake(LimitCall(limit="5usd", step="build_plan"))
    assert message == "The budget of the step build_plan of order/wo-1 has no limit to raise."
    assert remedy == "Set one with `septet budget set order/wo-1 5usd --step build_plan`."
    unlimited = AccountBook(AccountState(scope="day", step_limits={STEP: parse_limit("3usd")}))
    assert "add `--step implement_plan`" in unlimited.find_mistake(LimitCall(limit="5usd"))[1]


def test_a_budget_is_not_raised_beyond_what_can_be_read() -> None:
    """A raise to an amount that the account could not read again is refused, with the command that helps."""
    account = book("1000000Mtok", "day")
    assert account.find_mistake(LimitCall(limit="1tok")) == ("", "")
    message, remedy = account.find_mistake(LimitCall(limit="1000000000Mtok"))
    assert "and with 1000000000Mtok more it has too large an amount" in message
    assert "`septet budget set day none`" in remedy


def test_a_total_is_not_raised_by_an_amount_for_each_day() -> None:
    """A limit in all cannot be raised by a daily amount; a daily limit can be raised by both kinds."""
    account = book("5usd")
    message, remedy = account.find_mistake(LimitCall(limit="20usd/day"))
    assert message == "The budget of order/wo-1 is 5usd in all, and cannot be raised by 20usd/day."
    assert remedy == (
        "Add an amount without `/day`, such as 20usd, or set another limit with `septet budget set order/wo-1 20usd/day`."
    )
    account.set_limit(LimitCall(limit="2usd", step=STEP), raises=False)
    remedy = account.find_mistake(LimitCall(limit="1usd/day", step=STEP))[1]
    assert "`septet budget set order/wo-1 1usd/day --step implement_plan`" in remedy
    daily = book("5usd/day", "project/o/r")
    for limit in ("2usd", "2usd/day"):
        assert daily.find_mistake(LimitCall(limit=limit)) == ("", "")


def test_a_turn_of_a_host_that_is_gone_holds_nothing_and_still_counts_when_it_is_told() -> None:
    """A new turn of the work order frees the lost turn's hold, and the lost turn's use still counts later."""
    account = book("5usd")
    account.reserve(reserve("gone"), NOON)
    assert account.reserve(reserve("elsewhere"), NOON).caps == Caps(usd=5.0)
    account.settle(settle("gone", 1.0), NOON)
    account.settle(settle("elsewhere", 1.0), NOON)
    assert account.view.total.usd == 2.0


def test_what_a_lost_turn_holds_is_free_once_its_agent_cannot_run_any_longer() -> None:
    """A lost turn's hold ends after its agent's time limit, and its late use still counts."""
    account = book("10usd", "project/o/r")
    account.reserve(reserve("a", "wo-a"), NOON)
    account.settle(settle("a", 4.8), NOON)
    assert account.reserve(reserve("lost", "wo-lost").model_copy(update={"wall_seconds": 3600.0}), NOON).granted
    assert account.hold_ends_in(NOON) is None
    assert not refused(account, reserve("b", "wo-b")).is_spent
    pause = account.hold_ends_in(NOON)
    assert pause is not None
    assert timedelta(hours=1) < pause < timedelta(hours=2)
    again = AccountBook(AccountState.model_validate_json(account.state.model_dump_json()))
    assert again.take_callers(NOON + pause) == ["wo-b"]
    assert again.view.running == 0
    assert again.reserve(reserve("b", "wo-b"), NOON + pause).granted
    again.settle(settle("lost", 1.0), NOON + pause)
    assert again.view.total.usd == 5.8


def test_a_hold_that_an_earlier_release_noted_ends_after_a_day() -> None:
    """The hold of an earlier release has no time limit, so it ends after a day."""
    hold = Hold(key="lost", order_id="wo-lost", caps=Caps(usd=5.0))
    state = AccountState(scope="project/o/r", limit=parse_limit("5usd"), holds=(hold,), waiting=("wo-b",))
    account = AccountBook(state)
    assert account.take_callers(NOON) == []
    assert account.hold_ends_in(NOON) == timedelta(days=1)
    assert account.take_callers(NOON + timedelta(days=1)) == ["wo-b"]
    assert account.view.running == 0


@given(st.integers(0, 10_000), st.integers(2, 12), st.sampled_from(["7usd", "7usd/day"]), st.booleans())
def test_many_agents_pass_a_shared_limit_by_one_turn_at_most(
    seed: int, agents: int, limit: str, of_step: bool
) -> None:
    """Each agent ends after the request that exceeds its part, so together they exceed the limit by one."""
    limits = {"step_limits": {STEP: parse_limit(limit)}} if of_step else {"limit": parse_limit(limit)}
    account = AccountBook(AccountState.model_validate({"scope": "project/o/r", **limits}))
    random, running = Random(seed), dict[str, float]()  # noqa: S311 -- a test repeats it by its seed
    request, spent, started = 0.05, 0.0, 0
    for _ in range(400):
        if len(running) < agents and random.random() < 0.6:
            key = f"turn-{started}"
            grant = account.reserve(reserve(key, order=key), NOON)
            if grant.granted:
                started += 1
                assert grant.caps.usd is not None
                running[key] = grant.caps.usd
        elif running:
            key = random.choice([*running])
            whole, most = random.uniform(0.01, 1.5), running.pop(key)
            used = min(whole, most + random.uniform(0.0, request))
            spent += used
            account.settle(SettleCall(key=key, used=Spending(usd=used)), NOON)
    for key, most in running.items():
        spent += most + request
        account.settle(SettleCall(key=key, used=Spending(usd=most + request)), NOON)
    assert abs(account.view.total.usd - spent) < 0.001
    assert spent <= 7.0 + request + 0.001
