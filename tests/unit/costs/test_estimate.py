"""The estimate of a work order's costs: its interval holds in eight of ten cases, or it is unknown."""

import math
from collections.abc import Callable
from random import Random
from statistics import fmean
from typing import Any

import pytest

from septet.contracts.amounts import Spending
from septet.contracts.costs import SUMMARY, CostHistory, Estimate, Interval, OrderCosts, TurnCost
from septet.costs.estimate import (
    ALL_STEPS,
    FEWEST,
    REST_STEPS,
    WHOLE,
    Question,
    WorkAhead,
    estimate_costs,
    interval_of,
)

QUESTION = Question(project="o/r", agent="claude")
TRIALS = 1000
WHOLE_TRIALS = 100
"""The number of trials with whole estimates."""


def order(number: int, usd: float, plan_bytes: int = 0, **fields: Any) -> OrderCosts:
    """Return a completed work order with one turn for each step and most of its cost in the implementation."""
    shares = dict.fromkeys(ALL_STEPS, 0.05) | {"implement_plan": 0.7}
    turns = tuple(
        TurnCost(
            key=step,
            step=step,
            use=Spending(usd=usd * part, tokens=round(1e6 * usd * part), seconds=600 * usd * part, turns=1),
        )
        for step, part in shares.items()
    )
    values = {"agent": "claude", **fields}
    return OrderCosts(order_id=f"wo-{number}", turns=turns, plan_bytes=plan_bytes, is_completed=True, **values)


def history(costs: list[OrderCosts], project: str = "o/r") -> CostHistory:
    return CostHistory(project=project, completed=tuple(costs))


def rest_of(*work: WorkAhead, **fields: Any) -> Question:
    return Question(project="o/r", agent="claude", work=work, is_rest=True, **fields)


def pipeline_of(*work: WorkAhead, **fields: Any) -> Question:
    return Question(**{"project": "o/r", "agent": "claude", "work": work, "of_pipeline": True, **fields})


def usd_of(estimate: Estimate) -> Interval:
    assert estimate.remaining is not None
    assert estimate.remaining.usd is not None
    return estimate.remaining.usd


def lognormal(rng: Random, _: int) -> float:
    return rng.lognormvariate(0.0, 0.9)


def two_kinds(rng: Random, _: int) -> float:
    """Return a small cost, or in one of five cases ten times as much."""
    return rng.uniform(0.5, 1.5) * (10 if rng.random() < 0.2 else 1)


def growing(rng: Random, place: int) -> float:
    """Return a cost whose level rises by a half over a hundred work orders."""
    return rng.lognormvariate(0.0, 0.7) * (1 + 0.005 * place)


@pytest.mark.parametrize("cost", [lognormal, two_kinds, growing])
@pytest.mark.parametrize("count", [FEWEST, 25, 100])
def test_the_interval_holds_eight_of_ten(cost: Callable[[Random, int], float], count: int) -> None:
    """Between 70 and 90 % of further costs lie in the interval, for each distribution."""
    rng, hits = Random(f"{cost.__name__}-{count}"), 0  # noqa: S311 -- repeated by its seed
    for _ in range(TRIALS):
        interval = interval_of([cost(rng, place) for place in range(count)])
        hits += interval.low <= cost(rng, count) <= interval.high
    assert 0.7 <= hits / TRIALS <= 0.9


def test_a_longer_plan_costs_more() -> None:
    """The plan's size makes the interval less than half as wide, and it still holds in eight of ten cases."""
    rng, hits, widths = Random(11), 0, []  # noqa: S311 -- repeated by its seed
    for _ in range(WHOLE_TRIALS):
        sizes = [round(rng.lognormvariate(8, 1)) for _ in range(26)]
        costs = [size / 3000 * rng.lognormvariate(0, 0.3) for size in sizes]
        known = history([order(n, usd, size) for n, (usd, size) in enumerate(zip(costs, sizes, strict=True))][:25])
        by_plan = estimate_costs(rest_of(WorkAhead(REST_STEPS, sizes[-1])), known)
        without = estimate_costs(rest_of(WorkAhead(REST_STEPS)), known)
        assert by_plan.by_plan
        narrow, wide = usd_of(by_plan), usd_of(without)
        hits += narrow.low <= costs[-1] * 0.85 <= narrow.high
        widths.append(math.log(narrow.high / narrow.low) / math.log(wide.high / wide.low))
    assert 0.7 <= hits / WHOLE_TRIALS <= 0.9
    assert fmean(widths) < 0.5
    assert by_plan.text.startswith("Estimate to finish: ")
    assert "by the size of the plan" in by_plan.text


def test_too_few_are_said_to_be_too_few() -> None:
    """With fewer than nine completed work orders there is no estimate, and the text names their number."""
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
    """With too few work orders in a project, those of all projects count, and the text says so."""
    others = [history([order(n, 2.0) for n in range(10)], "o/other")]
    wider = estimate_costs(QUESTION, history([order(99, 1.0)]), others)
    assert (wider.is_known, wider.orders, wider.all_projects) == (True, 11, True)
    assert wider.text == (
        "Estimate: 1.20 to 2.00 USD, 1.2M to 2.0M tokens and 12 to 20 agent minutes in 8 of 10 cases "
        "(from the last 11 work orders of all projects with claude)."
    )


def test_only_what_is_alike_counts() -> None:
    """Only work orders of the same agent count, and of the same model if there are enough."""
    mixed = [order(n, 1.0, model="sonnet") for n in range(20)] + [
        order(20 + n, 9.0, model="opus") for n in range(9)
    ]
    mixed += [order(50 + n, 100.0, agent="codex") for n in range(40)]
    opus = estimate_costs(Question(project="o/r", agent="claude", model="opus"), history(mixed))
    assert (opus.orders, round(usd_of(opus).low, 3), round(usd_of(opus).high, 3)) == (9, 9.0, 9.0)
    haiku = estimate_costs(Question(project="o/r", agent="claude", model="haiku"), history(mixed))
    assert haiku.orders == 20


def test_work_orders_in_which_agents_took_turns_are_left_out() -> None:
    """Mixed work orders do not count, and do not choose the agent."""
    seen = [order(n, 1.0) for n in range(9)]
    mixed = [order(9 + n, 50.0, agent=agent, is_mixed=True) for n, agent in enumerate(("claude", "codex"))]
    estimate = estimate_costs(Question(project="o/r"), history([*seen, *mixed]))
    assert estimate.orders == 9
    assert usd_of(estimate).high == pytest.approx(1.0)


def _unpriced(order: OrderCosts) -> OrderCosts:
    turns = [
        turn.model_copy(update={"use": turn.use.model_copy(update={"usd": 0.0, "unpriced": 1})})
        for turn in order.turns
    ]
    return order.model_copy(update={"turns": tuple(turns)})


def test_one_turn_without_a_price_hides_no_dollars() -> None:
    """Work orders with all prices give the dollars; with too few of them the text says that dollars are unknown."""
    seen = [order(n, 1.0 + n / 10) for n in range(9)]
    estimate = estimate_costs(QUESTION, history([*seen, _unpriced(order(9, 1.0))]))
    assert usd_of(estimate) == usd_of(estimate_costs(QUESTION, history(seen)))
    assert estimate.orders == 10
    too_few = estimate_costs(QUESTION, history([*seen[:8], _unpriced(order(9, 1.0))]))
    assert too_few.remaining is not None
    assert too_few.remaining.usd is None
    assert "USD" not in too_few.text
    assert too_few.text.endswith("Dollars are unknown: too few agent runs reported their cost.")


def test_at_its_plans_a_pipeline_costs_by_their_sizes() -> None:
    """An issue with a plan costs the steps after it, by the plan's size; an issue without one costs all steps."""
    sizes = [1000 * (1 + n % 10) for n in range(30)]
    seen = history([order(n, size / 1000, size) for n, size in enumerate(sizes)])
    small, large = (
        estimate_costs(rest_of(*[WorkAhead(REST_STEPS, size)] * 3, of_pipeline=True), seen)
        for size in (2000, 8000)
    )
    assert usd_of(small).middle == pytest.approx(3 * 2 * 0.85, rel=0.05)
    assert usd_of(large).middle == pytest.approx(3 * 8 * 0.85, rel=0.05)
    assert (small.by_plan, small.issues) == (True, 3)
    assert small.text.startswith("Estimate to finish 3 issues: ")
    mixed = estimate_costs(rest_of(WorkAhead(REST_STEPS, 2000), WHOLE, of_pipeline=True), seen)
    assert usd_of(mixed).middle == pytest.approx(2 * 0.85 + 5.5, rel=0.2)
    assert mixed.steps["build_plan"].tokens.high < mixed.steps["implement_plan"].tokens.low


def test_the_work_orders_of_pipelines_tell_of_pipelines() -> None:
    """With enough work orders of pipelines, only those count for a pipeline, and the others for a work order."""
    alone = [order(n, 4.0) for n in range(FEWEST)]
    shared = [order(20 + n, 1.0, of_pipeline=True) for n in range(FEWEST)]
    both, few = history([*alone, *shared]), history([*alone, *shared[1:]])
    pipeline = estimate_costs(pipeline_of(WHOLE, WHOLE), both)
    assert usd_of(pipeline).high == pytest.approx(2.0)
    assert pipeline.of_pipelines
    assert pipeline.text == (
        "Estimate for 2 issues: 2.00 to 2.00 USD, 2.0M to 2.0M tokens and 20 to 20 agent minutes in 8 of 10 cases "
        "(from the last 9 pipeline work orders of o/r with claude)."
    )
    assert usd_of(estimate_costs(QUESTION, both)).low == pytest.approx(4.0)
    mixed = estimate_costs(pipeline_of(WHOLE), few)
    assert (mixed.orders, mixed.of_pipelines) == (2 * FEWEST - 1, False)
    assert "from the last 17 work orders of o/r" in mixed.text


def test_summaries_of_long_sessions_count_for_a_pipeline() -> None:
    """Summaries count for a pipeline, whose sessions continue from issue to issue, and not for a work order."""
    summary = TurnCost(key="s", step=SUMMARY, use=Spending(usd=0.5, turns=1))
    lane = [order(n, 1.0, of_pipeline=True) for n in range(FEWEST)]
    lane = [each.model_copy(update={"turns": (*each.turns, summary)}) for each in lane]
    assert usd_of(estimate_costs(pipeline_of(WHOLE), history(lane))).middle == pytest.approx(1.5)
    assert usd_of(estimate_costs(QUESTION, history(lane))).middle == pytest.approx(1.0)


def test_planner_and_executor_are_told_apart() -> None:
    """Work orders with another planner count only for a question with that planner."""
    alone = [order(n, 4.0) for n in range(FEWEST)]
    two = [order(20 + n, 1.0, planner="codex") for n in range(FEWEST)]
    both = history([*alone, *two])
    assert usd_of(estimate_costs(QUESTION, both)).low == pytest.approx(4.0)
    assert usd_of(estimate_costs(pipeline_of(WHOLE, planner="codex"), both)).high == pytest.approx(1.0)
    assert estimate_costs(pipeline_of(WHOLE, planner="codex"), history(alone)).text == (
        "Estimate: unknown. No work order with codex as planner and claude as executor has been completed yet, "
        "and an estimate needs 9."
    )
