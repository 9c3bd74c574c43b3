"""The history of a project's costs counts each note once and stays small."""

import pytest

from septet.contracts.amounts import Spending
from septet.contracts.costs import (
    EARLIER,
    MOST_COMPLETED,
    MOST_OPEN,
    MOST_ROWS,
    MOST_WEEKS,
    PLAN_STEPS,
    SUMMARY,
    CostHistory,
    CostNote,
    OrderCosts,
)
from septet.contracts.names import REWORK, Step
from septet.costs.cost_book import CostBook

MOST_BYTES = 1_800_000
"""The server's limit for one payload less a margin, in bytes."""


def note(usd: float, order_id: str = "wo-1", key: str = "1", **fields: object) -> CostNote:
    values = {"step": "build_plan", "agent": "claude", "week": "2026-W40", **fields}
    use = Spending(usd=usd, tokens=round(usd * 1000), seconds=usd * 10)
    return CostNote.model_validate({"project": "o/r", "order_id": order_id, "key": key, "use": use, **values})


def book() -> CostBook:
    return CostBook(CostHistory(project="o/r"))


def total(history: CostHistory) -> Spending:
    sums = Spending()
    for row in history.rows:
        sums = sums.plus(row.use)
    return sums


def test_what_comes_again_counts_once() -> None:
    """A repeated note adds nothing, and a later note of a turn adds its increase, also in a new run."""
    costs = book()
    costs.add([note(1.0), note(1.0), note(1.5)])
    costs = CostBook(CostHistory.model_validate_json(costs.history.model_dump_json()))
    costs.add([note(1.5), note(2.0, key="2")])
    found = total(costs.history)
    assert (found.usd, found.tokens, found.turns) == (3.5, 3500, 2)
    assert costs.history.open[0].by_step["build_plan"].usd == 3.5


def test_a_turn_with_a_run_without_a_price_is_told_apart_once() -> None:
    """Several unpriced runs of a turn count as one unpriced turn, also after an earlier note."""
    costs, first = book(), note(1.0)
    costs.add([first])
    for unpriced in (1, 1, 2):
        more = Spending(usd=1.0, tokens=4000 + unpriced, seconds=20.0, unpriced=unpriced)
        costs.add([first.model_copy(update={"use": more})])
    found = total(costs.history)
    assert (found.usd, found.turns, found.unpriced) == (1.0, 1, 1)
    assert costs.history.open[0].by_step["build_plan"].unpriced == 1


def test_a_work_order_is_completed_with_its_last_turn() -> None:
    """The pull request's turn completes a work order, and a later rework leaves it completed."""
    costs = book()
    costs.add([note(1.0), note(1.0, key="2", step="create_pull_request")])
    assert [len(costs.history.open), len(costs.history.completed)] == [1, 0]
    costs.add([note(1.0, key="2", step="create_pull_request", completes=True, plan_bytes=900)])
    costs.add([note(3.0, key="3", step="rework")])
    (completed,) = costs.history.completed
    assert (completed.plan_bytes, completed.by_step["rework"].usd, costs.history.open) == (900, 3.0, ())


def test_it_stays_small_and_its_sum_whole() -> None:
    """After 1,200 work orders the history has the last work orders and weeks, and the sum of all."""
    costs = book()
    for number in range(1200):
        week = f"{2020 + number // 400}-W{1 + number // 8 % 50:02}"
        costs.add([note(1.0, f"wo-{number}", week=week, model=f"m{number % 7}", completes=number % 2 == 0)])
    history = costs.history
    assert total(history).usd == 1200
    assert (len(history.completed), len(history.open)) == (MOST_COMPLETED, MOST_OPEN)
    assert len({row.week for row in history.rows} - {EARLIER}) <= MOST_WEEKS


def test_a_history_that_is_full_of_long_work_orders_is_less_than_a_payload() -> None:
    """With long names and many turns the history fits a payload, and each step's sum is complete."""
    costs, steps = book(), [*(step.value for step in Step), REWORK, SUMMARY]
    use = Spending(usd=1234.567891, tokens=12_345_678_901, seconds=123_456.789)
    last_year = [f"{2026 + number // 50}-W{1 + number % 50:02}" for number in range(MOST_WEEKS)]
    for number in range(MOST_COMPLETED + MOST_OPEN):
        costs.add(
            CostNote(
                order_id=f"wo-{number:061}", key=f"{turn:016x}", step=steps[turn % len(steps)], agent="opencode",
                login="the-second-one", model=f"a-provider/a-models-whole-name-{number % 5:031}", asked_model="m" * 60,
                use=use, week=last_year[number % MOST_WEEKS], completes=number < MOST_COMPLETED, plan_bytes=123_456,
            )
            for turn in range(30)
        )  # fmt: skip
    history = costs.history
    orders = (*history.completed, *history.open)
    assert (len(history.completed), len(history.open)) == (MOST_COMPLETED, MOST_OPEN)
    assert MOST_ROWS / 2 < len(history.rows) <= MOST_ROWS
    assert {order.by_step[steps[0]].usd for order in orders} == {round(4 * use.usd, 6)}
    assert len(history.model_dump_json()) < MOST_BYTES


def told(*turns: tuple[str, str], last_use: Spending | None = None) -> OrderCosts:
    """Return a completed work order with these turns, in the order of their notes."""
    notes = [
        note(1.0, key=f"{place}", step=step, agent=agent, asked_model=f"{agent}-1")
        for place, (step, agent) in enumerate(turns)
    ]
    last = {"completes": True, **({} if last_use is None else {"use": last_use})}
    costs = book()
    costs.add([*notes[:-1], notes[-1].model_copy(update=last)])
    (order,) = costs.history.completed
    return order


STEPS = [step.value for step in Step]


@pytest.mark.parametrize("last", ["create_pull_request", "create_commit"])
def test_a_late_step_of_another_agent_leaves_a_work_order_with_the_one_that_carried_out_its_plan(
    last: str,
) -> None:
    """A later step of another agent makes the work order mixed, but does not change its agent."""
    order = told(*((step, "claude") for step in STEPS if step != last), (last, "codex"))
    assert (order.agents, order.is_mixed) == (("claude", "claude"), True)
    early = told((last, "codex"), *((step, "claude") for step in STEPS if step != last))
    assert (early.agents, early.is_mixed) == (("claude", "claude"), True)


def test_a_rework_by_another_agent_changes_nothing_of_a_work_order() -> None:
    """Neither a planner of its own, nor a summary, nor a rework makes the work order mixed."""
    turns = [(step, "codex" if step in PLAN_STEPS else "claude") for step in STEPS]
    order = told(*turns, (SUMMARY, "codex"), (REWORK, "codex"))
    assert (order.agents, order.model, order.is_mixed) == (("codex", "claude"), "claude-1", False)


def test_a_word_of_a_turn_that_used_nothing_tells_no_agent() -> None:
    """A turn without use names no agent, such as the turn that finds an existing pull request."""
    order = told(
        *((step, "codex") for step in STEPS if step != "create_pull_request"),
        ("create_pull_request", "claude"),
        last_use=Spending(),
    )
    assert (order.agents, order.is_mixed) == (("codex", "codex"), False)
