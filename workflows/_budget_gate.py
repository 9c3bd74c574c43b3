"""The gate of budgets: where one is used up, the work waits until it is open again, and goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Protocol

from temporalio import workflow

from septet.contracts.budget import BudgetWait
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, StepResult
from workflows._cancellation import is_to_end
from workflows.hosts.host_watch import AnyStepCall

_GOES_ON: Final = (
    "The work was paused for its budget, and continues now. Look at the worktree (`git status`, `git diff`) "
    "before you do anything twice."
)
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

    async def carry_out(
        self, call: AnyStepCall, take: Callable[[AnyStepCall], Awaitable[StepResult]]
    ) -> StepResult:
        """Carry an activity out, over as many waits for budgets as it takes.

        Raises:
            asyncio.CancelledError: The work is to end.
        """
        while True:
            self._is_open = False
            result = await take(call)
            wait = result.budget_wait if result.verdict is Verdict.OVER_BUDGET else None
            if wait is None:
                return result
            if is_to_end():
                raise asyncio.CancelledError
            await self._wait(wait)
            call = _go_on(call, result)

    async def _wait(self, wait: BudgetWait) -> None:
        shown = wait.model_copy(update={"remedy": wait.remedy[:_REMEDY_LIMIT]})
        self._waiting.wait_for_budget(shown, workflow.now())
        self._show()
        await workflow.wait_condition(lambda: self._is_open)
        self._waiting.go_on("", f"the budget of {wait.scope} is open again", workflow.now())
        self._show()


def _go_on(call: AnyStepCall, result: StepResult) -> AnyStepCall:
    """Return the call that goes on from where the budget ended: in its session, with its work."""
    if isinstance(call, FinalizeCall):
        unread = result.model_copy(update={"verdict": Verdict.UNPARSED, "budget_wait": None})
        return call.model_copy(update={"result": unread})
    if result.session_id is None or not result.run:
        return call
    reasons = (*(reason for reason in call.reasons if reason != _GOES_ON), _GOES_ON)
    update = {
        "session_id": result.session_id,
        "starts_from": result.checkpoint or call.starts_from,
        "reasons": reasons,
    }
    return call.model_copy(update=update)
