"""The gate of budgets: work whose budget is used up waits here until the budget is open again."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from temporalio import workflow

from septet.contracts.budget import BudgetWait

_REMEDY_LIMIT: Final = 500


class Waiting(Protocol):
    """The state of work that waits for a budget."""

    def wait_for_budget(self, wait: BudgetWait, now: datetime) -> None:
        """Record the wait for a budget."""

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Record the end of the wait."""


class BudgetGate:
    """The wait of a work order or a round for a budget."""

    def __init__(self, waiting: Waiting, show: Callable[[], None]) -> None:
        """Start closed; `show` shows the waiting work to people."""
        self._waiting = waiting
        self._show = show
        self._is_open = False

    def open(self) -> None:
        """Record that a budget is open again: the waiting work reserves again."""
        self._is_open = True

    def close(self) -> None:
        """Forget earlier reports of open budgets, before a new reservation."""
        self._is_open = False

    async def wait(self, wait: BudgetWait) -> None:
        """Wait until a budget is open again, and show the wait to people."""
        shown = wait.model_copy(update={"remedy": wait.remedy[:_REMEDY_LIMIT]})
        self._waiting.wait_for_budget(shown, workflow.now())
        self._show()
        await workflow.wait_condition(lambda: self._is_open)
        self._waiting.go_on("", f"the budget of {wait.scope} is open again", workflow.now())
        self._show()
