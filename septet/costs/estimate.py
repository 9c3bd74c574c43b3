"""Estimate what work orders will cost, from the last completed ones.

An interval reaches from the first to the ninth decile of the known costs. If n similar costs are known, the next
cost lies between the k-th smallest and the k-th largest in (n + 1 - 2k) of (n + 1) cases, whatever the
distribution. Nine is the smallest n for eight of ten cases. The intervals of several work orders are added: a sum
varies less than its parts, so it lies in the added interval more often.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import linear_regression, quantiles
from typing import Final

from septet.contracts.amounts import Spending, usd_text
from septet.contracts.costs import (
    PLAN_STEPS,
    SUMMARY,
    Amounts,
    CostHistory,
    Estimate,
    Interval,
    OrderCosts,
    TurnCost,
)
from septet.contracts.names import Step
from septet.system.text import count_noun

FEWEST: Final = 9
"""The fewest work orders that give an interval for eight of ten cases."""
_RECENT: Final = 20
"""The most work orders for an estimate; older ones had other models, prices and prompts."""
_FEWEST_BY_PLAN: Final = 20
"""The fewest work orders that show how costs depend on the plan's size."""
_FEW: Final = 0.1
"""The largest share of runs that may lack a cost; up to this share, tokens replace the missing costs."""
_NOT_ALWAYS: Final = frozenset({Step.GENERATE_BRANCH.value, SUMMARY})
"""The steps that some work orders do not have: in a pipeline with one branch, only one names the branch, and only
long sessions are summarised."""
_STEEPEST: Final = 2.0
"""The largest exponent with which costs may grow with the plan's size."""
_SECONDS: Final = 60.0
_THOUSAND: Final = 1000
_ALMOST_TEN_THOUSAND: Final = 9950
_ALMOST_A_MILLION: Final = 999_500
_TWO_DIGITS: Final = 10
ALL_STEPS: Final = tuple(step.value for step in Step)
"""The steps up to the pull request; later work is not estimated."""
REST_STEPS: Final = tuple(step for step in ALL_STEPS if step not in PLAN_STEPS)
"""The steps after the plan."""


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """What one work order still has to do."""

    steps: tuple[str, ...] = ALL_STEPS
    plan_bytes: int = 0
    """The size of the plan in bytes; 0 without a plan."""


WHOLE: Final = WorkAhead()


@dataclass(frozen=True, slots=True)
class Question:
    """The work for which an estimate is requested."""

    project: str
    agent: str = ""
    """The agent; by default that of the last work order."""
    planner: str = ""
    """The agent that plans, if another agent plans."""
    model: str = ""
    work: tuple[WorkAhead, ...] = (WHOLE,)
    """For each work order, what it still has to do."""
    of_pipeline: bool = False
    """Whether the work belongs to a pipeline, whose work orders share sessions."""
    is_rest: bool = False
    """Whether part of the work is already done."""

    @property
    def agents(self) -> tuple[str, str]:
        """The planning agent, and the agent of all other steps."""
        return self.planner or self.agent, self.agent

    @property
    def steps(self) -> tuple[str, ...]:
        """All steps that any of the work orders still has to do."""
        ahead = {step for work in self.work for step in work.steps}
        return (*(step for step in ALL_STEPS if step in ahead), *((SUMMARY,) if self.of_pipeline else ()))


def estimate_costs(question: Question, own: CostHistory | None, others: Sequence[CostHistory] = ()) -> Estimate:
    """Return the expected costs of the work; they have no numbers if too few work orders were completed.

    `others` are the histories of other projects, used if the project's own has too few work orders.
    """
    if not question.agent:  # then the agent of the last work order
        histories = (*others, own) if own is not None else others
        agents = [order.agent for history in histories for order in history.completed if not order.is_mixed]
        question = replace(question, agent=agents[-1]) if agents else question
    alike = _alike(question, own.completed if own is not None else ())
    is_wider = len(alike) < FEWEST
    if is_wider:
        completed = tuple(chain.from_iterable(each.completed for each in others))
        wider = _alike(question, (*completed, *(own.completed if own is not None else ())))
        if len(wider) < FEWEST:
            return _unknown(question, len(wider))
        alike = wider
    forecast = _Forecast(alike, question)
    estimate = Estimate(
        is_known=True,
        orders=len(alike),
        issues=len(question.work),
        remaining=forecast.amounts(question.steps),
        steps={step: forecast.amounts((step,)) for step in question.steps},
        all_projects=is_wider,
        by_plan=_tells_growth(alike) and any(work.plan_bytes for work in question.work),
        of_pipelines=question.of_pipeline and all(order.of_pipeline for order in alike),
    )
    return estimate.model_copy(update={"text": _in_words(question, estimate)})


def _alike(question: Question, orders: Sequence[OrderCosts]) -> list[OrderCosts]:
    """Return the newest completed work orders that had the question's agents and its steps.

    Work orders with another model are left out, if at least `FEWEST` then remain. By the same rule, work orders
    of pipelines are left out for a question about single work orders, and single work orders for a pipeline.
    """
    needed = set(question.steps) - _NOT_ALWAYS
    alike = [
        order
        for order in orders
        if order.agents == question.agents and not order.is_mixed and needed <= set(order.by_step)
    ]
    narrower: list[Callable[[OrderCosts], bool]] = [lambda order: order.of_pipeline == question.of_pipeline]
    if question.model:
        narrower.insert(0, lambda order: order.model == question.model)
    for is_closer in narrower:
        closer = [order for order in alike if is_closer(order)]
        alike = closer if len(closer) >= FEWEST else alike
    return alike[-_RECENT:]


@dataclass(frozen=True, slots=True)
class _Forecast:
    """A forecast from the costs of at least `FEWEST` completed work orders."""

    orders: Sequence[OrderCosts]
    question: Question

    def amounts(self, steps: Collection[str]) -> Amounts:
        """Return what the given steps will cost, in all work orders of the question together."""
        return Amounts(
            usd=self._dollars(steps),
            tokens=self._interval(self.orders, steps, lambda use: float(use.tokens)),
            minutes=self._interval(self.orders, steps, lambda use: use.seconds / _SECONDS),
        )

    def _dollars(self, steps: Collection[str]) -> Interval | None:
        """Return the expected dollars; `None` if too many costs are missing.

        If enough work orders have a cost for each run, only these count; else all, with missing costs estimated.
        """
        orders = [each for each in self.orders if not any(turn.use.unpriced for turn in _turns_of(each, steps))]
        if len(orders) < FEWEST:
            orders = _with_prices(self.orders)
        return self._interval(orders, steps, lambda use: use.usd) if orders else None

    def _interval(
        self, orders: Sequence[OrderCosts], steps: Collection[str], amount: Callable[[Spending], float]
    ) -> Interval:
        parts = []
        for work, count in Counter(self.question.work).items():
            ahead = {step for step in steps if step in work.steps or step == SUMMARY}
            costs = [sum(amount(turn.use) for turn in _turns_of(order, ahead)) for order in orders]
            parts.append((count, interval_of(_by_plan(costs, orders, work.plan_bytes))))
        return Interval(
            low=sum(count * each.low for count, each in parts),
            middle=sum(count * each.middle for count, each in parts),
            high=sum(count * each.high for count, each in parts),
        )


def _turns_of(order: OrderCosts, steps: Collection[str]) -> list[TurnCost]:
    return [turn for turn in order.turns if turn.step in steps]


def _with_prices(orders: Sequence[OrderCosts]) -> list[OrderCosts]:
    """Return the work orders; estimate their missing costs from tokens. Empty if too many costs are missing."""
    uses = [turn.use for order in orders for turn in order.turns]
    priced = [use for use in uses if not use.unpriced]
    tokens = sum(use.tokens for use in priced)
    if not tokens or sum(use.unpriced for use in uses) > _FEW * len(uses):
        return []
    price = sum(use.usd for use in priced) / tokens

    def with_price(turn: TurnCost) -> TurnCost:
        usd = max(turn.use.usd, turn.use.tokens * price) if turn.use.unpriced else turn.use.usd
        return turn.model_copy(update={"use": turn.use.model_copy(update={"usd": usd, "unpriced": 0})})

    return [order.model_copy(update={"turns": tuple(map(with_price, order.turns))}) for order in orders]


def interval_of(costs: Sequence[float]) -> Interval:
    """Return the median, and the interval for eight of ten cases."""
    deciles = quantiles(costs, n=10)
    return Interval(low=deciles[0], middle=deciles[4], high=deciles[8])


def _tells_growth(orders: Sequence[OrderCosts]) -> bool:
    sizes = {order.plan_bytes for order in orders}
    return len(orders) >= _FEWEST_BY_PLAN and len(sizes) > 1 and min(sizes) > 0


def _by_plan(costs: Sequence[float], orders: Sequence[OrderCosts], plan_bytes: int) -> Sequence[float]:
    """Return the costs adjusted to a plan's size, by a line through the logarithms of sizes and costs."""
    if not plan_bytes or not _tells_growth(orders) or min(costs) <= 0:
        return costs
    sizes = [math.log(order.plan_bytes) for order in orders]
    size = min(max(math.log(plan_bytes), min(sizes)), max(sizes))
    slope = min(max(linear_regression(sizes, [math.log(cost) for cost in costs]).slope, 0.0), _STEEPEST)
    return [cost * math.exp(slope * (size - seen)) for cost, seen in zip(costs, sizes, strict=True)]


def _unknown(question: Question, count: int) -> Estimate:
    agents = _agents_in_words(question)
    known = f"No work order with {agents} has been completed yet"
    if count:
        verb = "has" if count == 1 else "have"
        known = f"Only {count_noun(count, 'work order')} with {agents} {verb} been completed"
    text = f"Estimate: unknown. {known}, and an estimate needs {FEWEST}."
    return Estimate(orders=count, issues=len(question.work), text=text)


def _in_words(question: Question, estimate: Estimate) -> str:
    amounts = estimate.remaining
    if amounts is None:
        return ""
    parts = [f"{usd_text(amounts.usd.low)} to {usd_text(amounts.usd.high)} USD"] if amounts.usd is not None else []
    if amounts.tokens.high:
        parts.append(f"{_tokens(amounts.tokens.low)} to {_tokens(amounts.tokens.high)} tokens")
    minutes = f"{_minutes(amounts.minutes.low)} to {_minutes(amounts.minutes.high)} agent minutes"
    in_all = f"{', '.join(parts)} and {minutes}" if parts else minutes
    unknown = ""
    if amounts.usd is None and amounts.tokens.high:
        unknown = " Dollars are unknown: too few agent runs reported their cost."
    elif amounts.usd is None:
        unknown = " Dollars and tokens are unknown: agents reported neither."
    where = "of all projects" if estimate.all_projects else f"of {question.project}"
    size = ", by the size of the plan" if estimate.by_plan else ""
    issues = count_noun(len(question.work), "issue") if question.of_pipeline else ""
    verb = "to finish" if question.is_rest else "for" if issues else ""
    aim = "".join(f" {part}" for part in (verb, issues) if part)
    orders = count_noun(estimate.orders, f"{'pipeline ' if estimate.of_pipelines else ''}work order")
    return (
        f"Estimate{aim}: {in_all} in 8 of 10 cases{size} "
        f"(from the last {orders} {where} with {_agents_in_words(question)}).{unknown}"
    )


def _agents_in_words(question: Question) -> str:
    planner, agent = question.agents
    agent = agent or "the workers' agent"
    return agent if planner in {"", question.agent} else f"{planner} as planner and {agent} as executor"


def _tokens(count: float) -> str:
    """Return a number of tokens with about two digits: `950`, `34k`, `1.2M`."""
    if count < _THOUSAND:
        return f"{count:.0f}"
    if count < _ALMOST_A_MILLION:
        return f"{count / 1e3:.0f}k" if count >= _ALMOST_TEN_THOUSAND else f"{count / 1e3:.1f}k"
    return f"{count / 1e6:.1f}M"


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= _TWO_DIGITS else f"{minutes:.1f}"
