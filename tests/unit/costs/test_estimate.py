"""What a work order will cost: the interval holds what it says, or nothing is said."""

import math
from collections.abc import Callable
from random import Random
from statistics import fmean, stdev

import pytest

from septet.contracts.amounts import Spending
from septet.contracts.costs import CostHistory, OrderCosts, TurnCost
from septet.costs.estimate import ALL_STEPS, FEWEST, PLAN_STEPS, Question, estimate_costs, interval_of

QUESTION = Question(project="o/r", agent="claude")
REST = tuple(step for step in ALL_STEPS if step not in PLAN_STEPS)
TRIALS = 1000
WHOLE_TRIALS = 100
"""Of estimates with all their steps."""
EIGHTY_OF_100 = 1.2816
"""So many standard deviations about the mean hold eight of ten, if costs were normal."""


def order(number: int, usd: float, plan_bytes: int = 0, agent: str = "claude", model: str = "") -> OrderCosts:
    """Return a completed work order with one turn a step; most is paid for the implementation."""
    shares = dict.fromkeys(ALL_STEPS, 0.05) | {"implement_plan": 0.7}
    turns = tuple(
        TurnCost(
            key=step,
            step=step,
            use=Spending(usd=usd * part, tokens=round(1e6 * usd * part), seconds=600 * usd * part, turns=1),
        )
        for step, part in shares.items()
    )
    return OrderCosts(
        order_id=f"wo-{number}", agent=agent, model=model, turns=turns, plan_bytes=plan_bytes, is_completed=True
    )


def history(costs: list[OrderCosts], project: str = "o/r") -> CostHistory:
    return CostHistory(project=project, completed=tuple(costs))


def lognormal(rng: Random, _: int) -> float:
    return rng.lognormvariate(0.0, 0.9)


def two_kinds(rng: Random, _: int) -> float:
    """Most are small, one in five is ten times as dear."""
    return rng.uniform(0.5, 1.5) * (10 if rng.random() < 0.2 else 1)


def growing(rng: Random, place: int) -> float:
    """Prices that rise by a half over a hundred work orders."""
    return rng.lognormvariate(0.0, 0.7) * (1 + 0.005 * place)


@pytest.mark.parametrize("cost", [lognormal, two_kinds, growing])
@pytest.mark.parametrize("count", [FEWEST, 25, 100])
def test_the_interval_holds_eight_of_ten(cost: Callable[[Random, int], float], count: int) -> None:
    """Of costs that were held out, 70 to 90 % lie in the interval, whatever they look like."""
    rng, hits = Random(f"{cost.__name__}-{count}"), 0  # noqa: S311 -- repeated by its seed
    for _ in range(TRIALS):
        interval = interval_of([cost(rng, place) for place in range(count)])
        hits += interval.low <= cost(rng, count) <= interval.high
    assert 0.7 <= hits / TRIALS <= 0.9


def test_an_estimate_holds_eight_of_ten() -> None:
    """Of whole work orders that were held out, 70 to 90 % cost what was estimated from those before them."""
    rng, hits = Random(3), 0  # noqa: S311 -- repeated by its seed
    for _ in range(WHOLE_TRIALS):
        seen = [order(n, lognormal(rng, n)) for n in range(15)]
        estimate = estimate_costs(QUESTION, history(seen))
        assert estimate.remaining is not None
        assert estimate.remaining.usd is not None
        hits += estimate.remaining.usd.low <= lognormal(rng, 15) <= estimate.remaining.usd.high
    assert 0.7 <= hits / WHOLE_TRIALS <= 0.9


def test_mean_and_deviation_would_not() -> None:
    """Beside it, on the same costs, mean and standard deviation hold far more than they say, and reach below nothing."""
    rng, hits, below = Random(7), 0, 0  # noqa: S311 -- repeated by its seed
    for _ in range(TRIALS):
        seen = [lognormal(rng, 0) for _ in range(100)]
        reach = EIGHTY_OF_100 * stdev(seen)
        hits += fmean(seen) - reach <= lognormal(rng, 0) <= fmean(seen) + reach
        below += fmean(seen) < reach
    assert hits / TRIALS > 0.88
    assert below > TRIALS / 4


def test_a_longer_plan_costs_more() -> None:
    """At the plan gate the plan's size narrows the interval to a fraction, and it still holds eight of ten."""
    rng, hits, widths = Random(11), 0, []  # noqa: S311 -- repeated by its seed
    for _ in range(WHOLE_TRIALS):
        sizes = [round(rng.lognormvariate(8, 1)) for _ in range(26)]
        costs = [size / 3000 * rng.lognormvariate(0, 0.3) for size in sizes]
        known = history([order(n, usd, size) for n, (usd, size) in enumerate(zip(costs, sizes, strict=True))][:25])
        asked = Question(project="o/r", agent="claude", steps=REST, plan_bytes=sizes[-1])
        by_plan = estimate_costs(asked, known)
        without = estimate_costs(Question(project="o/r", agent="claude", steps=REST), known)
        assert by_plan.by_plan
        assert by_plan.remaining is not None
        assert by_plan.remaining.usd is not None
        assert without.remaining is not None
        assert without.remaining.usd is not None
        hits += by_plan.remaining.usd.low <= costs[-1] * 0.85 <= by_plan.remaining.usd.high
        widths.append(
            math.log(by_plan.remaining.usd.high / by_plan.remaining.usd.low)
            / math.log(without.remaining.usd.high / without.remaining.usd.low)
        )
    assert 0.7 <= hits / WHOLE_TRIALS <= 0.9
    assert fmean(widths) < 0.5
    assert by_plan.text.startswith("Estimate to finish: ")
    assert "by the size of the plan" in by_plan.text


def test_too_few_are_said_to_be_too_few() -> None:
    """With fewer than nine completed work orders nothing is estimated, and their number is said."""
    few = estimate_costs(QUESTION, history([order(n, 1.0) for n in range(FEWEST - 1)]))
    assert (few.is_known, few.orders, few.remaining) == (False, FEWEST - 1, None)
    assert (
        few.text
        == "Estimate: unknown. Only 8 work orders with claude have been completed, and an estimate needs 9."
    )
    none = estimate_costs(QUESTION, None)
    assert (
        none.text
        == "Estimate: unknown. No work order with claude has been completed yet, and an estimate needs 9."
    )


def test_other_projects_help_out_and_that_is_said() -> None:
    """Where a project has too few, the same agent's work orders of all projects are taken, and the words name them."""
    others = [history([order(n, 2.0) for n in range(10)], "o/other")]
    wider = estimate_costs(QUESTION, history([order(99, 1.0)]), others)
    assert (wider.is_known, wider.orders, wider.all_projects) == (True, 11, True)
    assert wider.text == (
        "Estimate: 1.20 to 2.00 USD, 1.2M to 2.0M tokens and 12 to 20 agent minutes in 8 of 10 cases "
        "(from the last 11 work orders of all projects with claude)."
    )


def test_only_what_is_alike_counts() -> None:
    """Another agent's work orders do not count, and the model that is asked for counts alone where it has enough."""
    mixed = [order(n, 1.0, model="sonnet") for n in range(20)] + [
        order(20 + n, 9.0, model="opus") for n in range(9)
    ]
    mixed += [order(50 + n, 100.0, agent="codex") for n in range(40)]
    opus = estimate_costs(Question(project="o/r", agent="claude", model="opus"), history(mixed))
    assert opus.remaining is not None
    assert opus.remaining.usd is not None
    assert (opus.orders, round(opus.remaining.usd.low, 3), round(opus.remaining.usd.high, 3)) == (9, 9.0, 9.0)
    haiku = estimate_costs(Question(project="o/r", agent="claude", model="haiku"), history(mixed))
    assert haiku.orders == 29


def test_dollars_are_left_out_where_a_cli_tells_none() -> None:
    """An agent that tells tokens alone is estimated in tokens and minutes."""
    unpriced = [
        each.model_copy(
            update={
                "turns": tuple(
                    turn.model_copy(update={"use": turn.use.model_copy(update={"usd": 0.0, "unpriced": 1})})
                    for turn in each.turns
                )
            }
        )
        for each in (order(n, 1.0) for n in range(9))
    ]
    estimate = estimate_costs(QUESTION, history(unpriced))
    assert estimate.remaining is not None
    assert estimate.remaining.usd is None
    assert "USD" not in estimate.text
    assert set(estimate.steps) == set(ALL_STEPS)
