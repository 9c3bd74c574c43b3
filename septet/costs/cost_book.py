"""Add notes about turns to a project's cost history, which stays within limits of size."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from septet.contracts.amounts import Spending
from septet.contracts.costs import (
    EARLIER,
    MOST_COMPLETED,
    MOST_OPEN,
    MOST_ROWS,
    MOST_TURNS,
    MOST_WEEKS,
    PLAN_STEPS,
    SUMMARY,
    CostHistory,
    CostNote,
    CostRow,
    OrderCosts,
    TurnCost,
)
from septet.contracts.names import REWORK, Step
from septet.errors import InvalidInputError

_IMPLEMENT: Final = Step.IMPLEMENT_PLAN.value
_Key = tuple[str, str, str, str, str]
"""The key of a row: week, step, agent, model and login."""
_OF_OTHERS: Final = PLAN_STEPS | {SUMMARY, REWORK}
"""The steps in which another agent than the executor may work."""


class CostBook:
    """Adds notes about turns to one project's cost history."""

    def __init__(self, history: CostHistory) -> None:
        self._project = history.project
        self._rows: dict[_Key, Spending] = {
            (row.week, row.step, row.agent, row.model, row.login): row.use for row in history.rows
        }
        self._completed = {order.order_id: order for order in history.completed}
        self._open = {order.order_id: order for order in history.open}

    @property
    def history(self) -> CostHistory:
        """The history, with all added notes."""
        rows = (
            CostRow(week=key[0], step=key[1], agent=key[2], model=key[3], login=key[4], use=use)
            for key, use in self._rows.items()
        )
        return CostHistory(
            project=self._project,
            rows=tuple(rows),
            completed=tuple(self._completed.values()),
            open=tuple(self._open.values()),
        )

    def add(self, notes: Iterable[CostNote]) -> None:
        """Add notes; a repeated note changes nothing."""
        for note in notes:
            self._add(note)
        # Keep the last year by week; add up earlier weeks for each step, agent, model and login.
        weeks = sorted({key[0] for key in self._rows} - {EARLIER})
        for week in weeks[:-MOST_WEEKS]:
            self._fold(key for key in [*self._rows] if key[0] == week)
        # While the history has too many rows, add up the oldest weeks into one sum for each step.
        weeks = weeks[-MOST_WEEKS:]
        while len(self._rows) > MOST_ROWS and weeks:
            week = weeks.pop(0)
            self._fold((key for key in [*self._rows] if key[0] in {week, EARLIER}), by_step=True)

    def _add(self, note: CostNote) -> None:
        order = self._completed.pop(note.order_id, None) or self._open.pop(note.order_id, None)
        order = order or OrderCosts(order_id=note.order_id)
        before = next((turn.use for turn in order.turns if turn.key == note.key), Spending())
        more = note.use.since(before)
        key = (note.week, note.step, note.agent, note.model, note.login)
        if any(more.amounts.values()):
            if before.turns:
                more = more.model_copy(update={"turns": 0, "unpriced": int(more.unpriced > before.unpriced)})
            self._rows[key] = self._rows.get(key, Spending()).plus(more)
        executed = _steps_of_executor(order)
        tells_agent = not executed
        if _executes(note.step, note.use):
            tells_agent = note.step == _IMPLEMENT or _IMPLEMENT not in executed
        use = before.plus(more)
        turns = [turn for turn in order.turns if turn.key != note.key]
        turns.append(TurnCost(key=note.key, step=note.step, use=use))
        order = OrderCosts(
            order_id=note.order_id,
            agent=note.agent if tells_agent else order.agent,
            planner=note.agent if note.step in PLAN_STEPS else order.planner,
            model=note.asked_model if tells_agent else order.model,
            is_mixed=order.is_mixed or _mixes(order, note),
            turns=_add_up_older(turns),
            plan_bytes=note.plan_bytes or order.plan_bytes,
            is_completed=order.is_completed or note.completes,
            of_pipeline=order.of_pipeline or note.of_pipeline,
        )
        kept, most = (self._completed, MOST_COMPLETED) if order.is_completed else (self._open, MOST_OPEN)
        kept[note.order_id] = order
        while len(kept) > most:
            del kept[next(iter(kept))]

    def _fold(self, keys: Iterable[_Key], *, by_step: bool = False) -> None:
        for key in keys:
            use = self._rows.pop(key)
            _, step, *rest = key
            agent, model, login = (EARLIER, EARLIER, EARLIER) if by_step else rest
            folded = (EARLIER, step, agent, model, login)
            self._rows[folded] = self._rows.get(folded, Spending()).plus(use)


def _mixes(order: OrderCosts, note: CostNote) -> bool:
    """Return whether `note.agent` continues the plan or the execution of another agent."""
    planner = order.planner if note.step in PLAN_STEPS else ""
    executor = order.agent if _executes(note.step, note.use) and _steps_of_executor(order) else ""
    return (planner or executor or note.agent) != note.agent


def _steps_of_executor(order: OrderCosts) -> set[str]:
    return {turn.step for turn in order.turns if _executes(turn.step, turn.use)}


def _executes(step: str, use: Spending) -> bool:
    """Return whether an executor worked in a turn; `use` is zero if no agent worked."""
    return step not in _OF_OTHERS and any(use.amounts.values())


def _add_up_older(turns: Sequence[TurnCost]) -> tuple[TurnCost, ...]:
    """Return the latest turns as they are, and all older turns added up by step."""
    told_apart = [turn for turn in turns if turn.key != EARLIER]
    older = (*(turn for turn in turns if turn.key == EARLIER), *told_apart[:-MOST_TURNS])
    sums = OrderCosts(order_id="", turns=older).by_step
    return (*(TurnCost(key=EARLIER, step=step, use=use) for step, use in sums.items()), *told_apart[-MOST_TURNS:])


_WEEK: Final = re.compile(r"([0-9]{4})-W([0-9]{2})")
_AGE: Final = re.compile(r"([0-9]{1,4})([dw])")


def first_week(since: str, today: date) -> str:
    """Return an ISO week: the week `since`, or the week in which an age such as `4w` or `30d` began.

    If `since` is empty, which means all weeks, the result is empty. `today` is a day in UTC.

    Raises:
        InvalidInputError: `since` is neither an age nor a week that exists in its year.
    """
    if not since:
        return ""
    if age := _AGE.fullmatch(since):
        day = today - timedelta(days=int(age[1]) * {"d": 1, "w": 7}[age[2]])
        return f"{day.isocalendar().year}-W{day.isocalendar().week:02}"
    if week := _WEEK.fullmatch(since):
        with suppress(ValueError):
            date.fromisocalendar(int(week[1]), int(week[2]), 1)
            return since
    raise InvalidInputError(f"since {since!r} is not a week.", remedy="Write it as 2026-W40, 4w or 30d.")
