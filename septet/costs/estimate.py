"""What a work order will cost, from what those before it have cost.

An interval lies between two of the costs that were seen: of n that are alike, the next one lies between the k-th
smallest and the k-th largest in (n + 1 - 2k) of (n + 1) cases, whatever the costs look like. From nine on that can
be eight of ten; with fewer nothing is said.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Final

from septet.contracts.amounts import Spending
from septet.contracts.costs import Amounts, CostHistory, Estimate, Interval, OrderCosts
from septet.contracts.names import Step

FEWEST: Final = 9
"""With fewer work orders no interval between their costs holds the next one in eight of ten cases."""
_FEWEST_BY_PLAN: Final = 20
"""Two more numbers are learned from them: the line along which costs grow with the plan."""
_RECENT: Final = 100
"""Older ones tell of other models, prices and commands."""
_TAIL: Final = 0.1
_LEFT_OUT: Final = frozenset({Step.GENERATE_BRANCH.value})
"""A pipeline that keeps to one branch has it not named again."""
_STEEPEST: Final = 2.0
_LEAST_WEIGHT: Final = 0.2
"""Of one whose plan is so far from all others that it alone bends the line."""
_SECONDS: Final = 60.0
PLAN_STEPS: Final = frozenset({Step.CLASSIFY_ISSUE.value, Step.BUILD_PLAN.value, Step.FIND_PLAN_FILE.value})
ALL_STEPS: Final = tuple(step.value for step in Step)
"""Of a work order; what follows its pull request is not estimated."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be estimated."""

    project: str
    agent: str = ""
    """That of the work order before where nobody knows."""
    model: str = ""
    steps: tuple[str, ...] = ALL_STEPS
    """Those that are still to come."""
    plan_bytes: int = 0
    """The size of the plan, where there is one."""


def estimate_costs(question: Question, own: CostHistory | None, others: Sequence[CostHistory] = ()) -> Estimate:
    """Return what the steps of a question will cost; not known where too few work orders were completed.

    Args:
        question: Which steps, of which project, with which agent.
        own: The project's history; `None` where it has none.
        others: Those of all other projects, where they are to help out.
    """
    question = _with_agent(question, own, others)
    alike = _alike(question, own.completed if own is not None else ())
    is_wider = len(alike) < FEWEST
    if is_wider:
        completed = tuple(chain.from_iterable(each.completed for each in others))
        wider = _alike(question, (*completed, *(own.completed if own is not None else ())))
        if len(wider) < FEWEST:
            return _unknown(question, len(wider))
        alike = wider
    orders = [order.by_step for order in alike]
    sizes = [order.plan_bytes for order in alike]
    by_plan = question.plan_bytes > 0 and len(alike) >= _FEWEST_BY_PLAN and min(sizes) > 0
    growth = _Growth(tuple(sizes), question.plan_bytes) if by_plan and len(set(sizes)) > 1 else None
    remaining = _amounts(orders, question.steps, growth)
    estimate = Estimate(
        is_known=True,
        orders=len(alike),
        remaining=remaining,
        steps={step: _amounts(orders, (step,), growth) for step in question.steps},
        all_projects=is_wider,
        by_plan=growth is not None,
    )
    return estimate.model_copy(update={"text": _in_words(question, estimate, remaining)})


def _with_agent(question: Question, own: CostHistory | None, others: Sequence[CostHistory]) -> Question:
    """Return a question about the agent that was used last, where it names none."""
    histories = (*others, own) if own is not None else others
    agents = [history.completed[-1].agent for history in histories if history.completed]
    return question if question.agent or not agents else replace(question, agent=agents[-1])


def _alike(question: Question, orders: Sequence[OrderCosts]) -> list[OrderCosts]:
    """Return the last ones that are whole and had the same agent; and the same model, where that leaves enough."""
    needed = set(question.steps) - _LEFT_OUT
    whole = [order for order in orders if order.agent == question.agent and needed <= set(order.by_step)]
    of_model = [order for order in whole if order.model == question.model]
    return (of_model if question.model and len(of_model) >= FEWEST else whole)[-_RECENT:]


def _amounts(orders: Sequence[Mapping[str, Spending]], steps: Sequence[str], growth: "_Growth | None") -> Amounts:
    sums = [_sum(order.get(step, Spending()) for step in steps) for order in orders]
    is_priced = not any(each.unpriced for each in sums)
    return Amounts(
        usd=_interval([each.usd for each in sums], growth) if is_priced else None,
        tokens=_interval([float(each.tokens) for each in sums], growth),
        minutes=_interval([each.seconds / _SECONDS for each in sums], growth),
    )


def _sum(parts: Iterable[Spending]) -> Spending:
    return reduce(Spending.plus, parts, Spending())


def _interval(costs: Sequence[float], growth: "_Growth | None") -> Interval:
    return growth.interval(costs) if growth is not None and min(costs) > 0 else interval_of(costs)


def interval_of(costs: Sequence[float]) -> Interval:
    """Return where the next of such costs lies in eight of ten cases, and the middle one."""
    ascending = sorted(costs)
    low, middle, high = (_between(ascending, part) for part in (_TAIL, 0.5, 1 - _TAIL))
    return Interval(low=low, middle=middle, high=high)


def _between(ascending: Sequence[float], part: float) -> float:
    """Return the value below which the next one lies with this probability."""
    place = min(max(part * (len(ascending) + 1) - 1, 0.0), len(ascending) - 1.0)
    low = math.floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)


class _Growth:
    """How costs grow with the size of a plan: a line through their logarithms."""

    def __init__(self, sizes: tuple[int, ...], size: int) -> None:
        """Take in the sizes that were seen, and the one that is asked for; it is taken as within them."""
        self._logs = [math.log(each) for each in sizes]
        self._asked = min(max(math.log(size), min(self._logs)), max(self._logs))
        self._mean = sum(self._logs) / len(sizes)
        self._spread = sum((each - self._mean) ** 2 for each in self._logs)

    def interval(self, costs: Sequence[float]) -> Interval:
        """Return where a cost lies by this size; how far costs lie off the line is seen without each itself."""
        values = [math.log(cost) for cost in costs]
        mean = sum(values) / len(values)
        slope = sum((size - self._mean) * value for size, value in zip(self._logs, values, strict=True))
        slope = min(max(slope / self._spread, 0.0), _STEEPEST)
        count = len(values)
        rests = [
            (value - mean - slope * (size - self._mean))
            / max(1 - 1 / count - (size - self._mean) ** 2 / self._spread, _LEAST_WEIGHT)
            for size, value in zip(self._logs, values, strict=True)
        ]
        line = mean + slope * (self._asked - self._mean)
        found = interval_of(rests)
        return Interval(
            low=math.exp(line + found.low),
            middle=math.exp(line + found.middle),
            high=math.exp(line + found.high),
        )


def _unknown(question: Question, count: int) -> Estimate:
    agent = question.agent or "the workers' agent"
    text = f"Estimate: unknown. No work order with {agent} has been completed yet, and an estimate needs {FEWEST}."
    if count:
        orders = "1 work order" if count == 1 else f"{count} work orders"
        verb = "has" if count == 1 else "have"
        text = (
            f"Estimate: unknown. Only {orders} with {agent} {verb} been completed, and an estimate needs {FEWEST}."
        )
    return Estimate(orders=count, text=text)


def _in_words(question: Question, estimate: Estimate, amounts: Amounts) -> str:
    """Return an estimate in one sentence, and what it rests on in another."""
    parts = [f"{amounts.usd.low:.2f} to {amounts.usd.high:.2f} USD"] if amounts.usd is not None else []
    parts.append(f"{_tokens(amounts.tokens.low)} to {_tokens(amounts.tokens.high)} tokens")
    minutes = f"{_minutes(amounts.minutes.low)} to {_minutes(amounts.minutes.high)} agent minutes"
    where = "of all projects" if estimate.all_projects else f"of {question.project}"
    rest = " to finish" if len(question.steps) < len(ALL_STEPS) else ""
    size = ", by the size of the plan" if estimate.by_plan else ""
    return (
        f"Estimate{rest}: {', '.join(parts)} and {minutes} in 8 of 10 cases{size} "
        f"(from the last {estimate.orders} work orders {where} with {question.agent})."
    )


def _tokens(count: float) -> str:
    """Return a number of tokens with about two digits: `950`, `34k`, `1.2M`."""
    if count < 1000:  # noqa: PLR2004 -- below it there is no unit
        return f"{count:.0f}"
    if count < 999_500:  # noqa: PLR2004 -- what rounds to a million is one
        return f"{count / 1e3:.0f}k" if count >= 9950 else f"{count / 1e3:.1f}k"  # noqa: PLR2004 -- two digits
    return f"{count / 1e6:.1f}M"


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}"  # noqa: PLR2004 -- two digits
