"""What work orders will cost, from what those before them have cost.

An interval lies between two of the costs that were seen: of n that are alike, the next one lies between the k-th
smallest and the k-th largest in (n + 1 - 2k) of (n + 1) cases, whatever the costs look like. From nine on that can
be eight of ten; with fewer nothing is said. Of several work orders, such as those of a pipeline, it lies between
two of the sums that `septet.costs.sums` draws from the same costs.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
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
)
from septet.contracts.names import Step
from septet.costs.sums import Draws
from septet.system.text import count_noun

FEWEST: Final = 9
"""With fewer work orders no interval between their costs holds the next one in eight of ten cases."""
_FEWEST_BY_PLAN: Final = 20
"""Two more numbers are learned from them: the line along which costs grow with the plan."""
_RECENT: Final = 100
"""Older ones tell of other models, prices and commands."""
_TAIL: Final = 0.1
_FEW: Final = 0.1
"""The part of agent runs without a cost whose dollars their tokens may stand for."""
_NOT_ALWAYS: Final = frozenset({Step.GENERATE_BRANCH.value, SUMMARY})
"""A pipeline that keeps to one branch has it not named again, and a session is summarised once it is long."""
_STEEPEST: Final = 2.0
_LEAST_WEIGHT: Final = 0.2
"""Of one whose plan is so far from all others that it alone bends the line."""
_SECONDS: Final = 60.0
_NO_DOLLARS: Final = " Dollars are unknown: too few agent runs reported their cost."
_NEITHER: Final = " Dollars and tokens are unknown: agents reported neither."
ALL_STEPS: Final = tuple(step.value for step in Step)
"""Of a work order; what follows its pull request is not estimated."""
REST_STEPS: Final = tuple(step for step in ALL_STEPS if step not in PLAN_STEPS)
"""Those that follow the plan."""


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """What is still to come of one work order."""

    steps: tuple[str, ...] = ALL_STEPS
    plan_bytes: int = 0
    """The size of the plan, where there is one."""


WHOLE: Final = WorkAhead()


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be estimated."""

    project: str
    agent: str = ""
    """That of the work order before where nobody knows."""
    planner: str = ""
    """The agent that plans, where it is another one."""
    model: str = ""
    work: tuple[WorkAhead, ...] = (WHOLE,)
    """Of each work order; at least one."""
    of_pipeline: bool = False
    """Whether it is about a pipeline, in whose lanes work orders share sessions."""
    is_rest: bool = False
    """Whether some of the work is done already."""

    @property
    def agents(self) -> tuple[str, str]:
        """The one that plans, and the one that does the rest."""
        return self.planner or self.agent, self.agent

    @property
    def steps(self) -> tuple[str, ...]:
        """Those that are still to come of any work order."""
        ahead = {step for work in self.work for step in work.steps}
        return (*(step for step in ALL_STEPS if step in ahead), *((SUMMARY,) if self.of_pipeline else ()))


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
    forecast = _Forecast(alike, question)
    estimate = Estimate(
        is_known=True,
        orders=len(alike),
        issues=len(question.work),
        remaining=forecast.amounts(question.steps),
        steps={step: forecast.amounts((step,)) for step in question.steps},
        all_projects=is_wider,
        by_plan=forecast.is_by_plan,
        of_pipelines=question.of_pipeline and all(order.of_pipeline for order in alike),
    )
    return estimate.model_copy(update={"text": _in_words(question, estimate)})


def _with_agent(question: Question, own: CostHistory | None, others: Sequence[CostHistory]) -> Question:
    """Return a question about the agent that was used last, where it names none."""
    histories = (*others, own) if own is not None else others
    agents = [order.agent for history in histories for order in history.completed if not order.is_mixed]
    return question if question.agent or not agents else replace(question, agent=agents[-1])


def _alike(question: Question, orders: Sequence[OrderCosts]) -> list[OrderCosts]:
    """Return the last ones that are whole and had the same agents, one that planned and one that did the rest.

    Of these only those of the same model, and only those of pipelines or outside of them, as far as either leaves
    enough.
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


class _Forecast:
    """What work orders that were completed say of the work ahead."""

    def __init__(self, orders: Sequence[OrderCosts], question: Question) -> None:
        """Take them in; at least `FEWEST`."""
        self._orders, self._question = orders, question
        self._by_step = [order.by_step for order in orders]
        kinds = Counter(question.work)
        summaries = {SUMMARY} if question.of_pipeline else set[str]()
        self._kinds = [summaries | set(work.steps) for work in kinds]
        sizes = tuple(order.plan_bytes for order in orders)
        grows = len(orders) >= _FEWEST_BY_PLAN and min(sizes) > 0 and len(set(sizes)) > 1
        self._growth = [
            _Growth(sizes, work.plan_bytes) if grows and work.plan_bytes > 0 else None for work in kinds
        ]
        self._draws = Draws(len(orders), tuple(kinds.values()))

    @property
    def is_by_plan(self) -> bool:
        """Whether the size of a plan is taken into account."""
        return any(growth is not None for growth in self._growth)

    def amounts(self, steps: Collection[str]) -> Amounts:
        """Return what these steps will cost, of all the work ahead."""
        use = [
            [_sum(order.get(step, Spending()) for step in steps if step in kind) for order in self._by_step]
            for kind in self._kinds
        ]
        return Amounts(
            usd=self._dollars(use, steps),
            tokens=self._interval([[float(each.tokens) for each in kind] for kind in use]),
            minutes=self._interval([[each.seconds / _SECONDS for each in kind] for kind in use]),
        )

    def _dollars(self, use: Sequence[Sequence[Spending]], steps: Collection[str]) -> Interval | None:
        """Return dollars by the work orders that have all theirs, else by those that lack few; else `None`."""
        unpriced = {place for kind in use for place, each in enumerate(kind) if each.unpriced}
        if not unpriced:
            return self._interval([[each.usd for each in kind] for kind in use])
        priced = [order for place, order in enumerate(self._orders) if place not in unpriced]
        enough = priced if len(priced) >= FEWEST else _with_prices(self._orders)
        return _Forecast(enough, self._question).amounts(steps).usd if enough else None

    def _interval(self, costs: Sequence[Sequence[float]]) -> Interval:
        by_plan = [
            growth.costs(kind) if growth is not None and min(kind) > 0 else kind
            for growth, kind in zip(self._growth, costs, strict=True)
        ]
        return interval_of(self._draws.sums(by_plan))


def _with_prices(orders: Sequence[OrderCosts]) -> list[OrderCosts]:
    """Give the few runs without a cost what their tokens cost in the others; nothing is returned for many."""
    uses = [turn.use for order in orders for turn in order.turns]
    told = _sum(use for use in uses if not use.unpriced)
    if not told.tokens or sum(use.unpriced for use in uses) > _FEW * len(uses):
        return []
    price = told.usd / told.tokens

    def priced(use: Spending) -> Spending:
        usd = max(use.usd, use.tokens * price)
        return use.model_copy(update={"usd": usd, "unpriced": 0}) if use.unpriced else use

    return [
        order.model_copy(
            update={"turns": tuple(turn.model_copy(update={"use": priced(turn.use)}) for turn in order.turns)}
        )
        for order in orders
    ]


def _sum(parts: Iterable[Spending]) -> Spending:
    return reduce(Spending.plus, parts, Spending())


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

    def costs(self, costs: Sequence[float]) -> list[float]:
        """Return the costs as they would be by this size; each lies off the line as far as without itself."""
        values = [math.log(cost) for cost in costs]
        mean = sum(values) / len(values)
        slope = sum((size - self._mean) * value for size, value in zip(self._logs, values, strict=True))
        slope = min(max(slope / self._spread, 0.0), _STEEPEST)
        count = len(values)
        line = mean + slope * (self._asked - self._mean)
        return [
            math.exp(
                line
                + (value - mean - slope * (size - self._mean))
                / max(1 - 1 / count - (size - self._mean) ** 2 / self._spread, _LEAST_WEIGHT)
            )
            for size, value in zip(self._logs, values, strict=True)
        ]


def _unknown(question: Question, count: int) -> Estimate:
    agents, needs = _agents_in_words(question), f"and an estimate needs {FEWEST}."
    text = f"Estimate: unknown. No work order with {agents} has been completed yet, {needs}"
    if count:
        orders = count_noun(count, "work order")
        verb = "has" if count == 1 else "have"
        text = f"Estimate: unknown. Only {orders} with {agents} {verb} been completed, {needs}"
    return Estimate(orders=count, issues=len(question.work), text=text)


def _in_words(question: Question, estimate: Estimate) -> str:
    """Return an estimate in one sentence, and what it rests on in another."""
    amounts = estimate.remaining
    if amounts is None:
        return ""
    parts = [f"{usd_text(amounts.usd.low)} to {usd_text(amounts.usd.high)} USD"] if amounts.usd is not None else []
    if amounts.tokens.high:
        parts.append(f"{_tokens(amounts.tokens.low)} to {_tokens(amounts.tokens.high)} tokens")
    minutes = f"{_minutes(amounts.minutes.low)} to {_minutes(amounts.minutes.high)} agent minutes"
    in_all = f"{', '.join(parts)} and {minutes}" if parts else minutes
    unknown = "" if amounts.usd is not None else _NO_DOLLARS if amounts.tokens.high else _NEITHER
    where = "of all projects" if estimate.all_projects else f"of {question.project}"
    size = ", by the size of the plan" if estimate.by_plan else ""
    orders = count_noun(estimate.orders, f"{'pipeline ' if estimate.of_pipelines else ''}work order")
    return (
        f"Estimate{_aim_in_words(question)}: {in_all} in 8 of 10 cases{size} "
        f"(from the last {orders} {where} with {_agents_in_words(question)}).{unknown}"
    )


def _aim_in_words(question: Question) -> str:
    """Return what is estimated: nothing for a whole work order, else ` to finish`, ` for 3 issues` and so on."""
    count = len(question.work)
    issues = count_noun(count, "issue") if question.of_pipeline else ""
    verb = "to finish" if question.is_rest else "for" if issues else ""
    return "".join(f" {part}" for part in (verb, issues) if part)


def _agents_in_words(question: Question) -> str:
    planner, agent = question.agents
    agent = agent or "the workers' agent"
    return agent if planner in {"", question.agent} else f"{planner} as planner and {agent} as executor"


def _tokens(count: float) -> str:
    """Return a number of tokens with about two digits: `950`, `34k`, `1.2M`."""
    if count < 1000:  # noqa: PLR2004 -- below it there is no unit
        return f"{count:.0f}"
    if count < 999_500:  # noqa: PLR2004 -- what rounds to a million is one
        return f"{count / 1e3:.0f}k" if count >= 9950 else f"{count / 1e3:.1f}k"  # noqa: PLR2004 -- two digits
    return f"{count / 1e6:.1f}M"


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}"  # noqa: PLR2004 -- two digits
