"""The gate of budgets: where a budget is used up, the work waits until that budget is open again."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from temporalio import workflow

from septet.contracts.budget import BudgetWait

_REMEDY_LIMIT: Final = 500


class Waiting(Protocol):
    """Who waits for a budget, and says so."""

    def wait_for_budget(self, wait: BudgetWait, now: datetime) -> None:
        """Wait until a budget is open again."""

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Go on."""


class BudgetGate:
    """Where work waits for a budget."""

    def __init__(self, waiting: Waiting, show: Callable[[], None]) -> None:
        """Begin with no budget used up.

        Args:
            waiting: Whose work it is.
            show: Shows it where people look.
        """
        self._waiting = waiting
        self._show = show
        self._is_open = False

    def open(self) -> None:
        """Take it that a budget is open again; whoever waits asks once more."""
        self._is_open = True

    def close(self) -> None:
        """Take it that every budget that was used up is asked again."""
        self._is_open = False

    async def wait(self, wait: BudgetWait) -> None:
        """Wait until a budget is open again, and show it where people look."""
        shown = wait.model_copy(update={"remedy": wait.remedy[:_REMEDY_LIMIT]})
        self._waiting.wait_for_budget(shown, workflow.now())
        self._show()
        await workflow.wait_condition(lambda: self._is_open)
        self._waiting.go_on("", f"the budget of {wait.scope} is open again", workflow.now())
        self._show()
