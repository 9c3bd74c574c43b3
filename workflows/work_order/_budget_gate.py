"""The gate of budgets: where one is used up, the work order waits until it is open again, and goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from temporalio import workflow

from septet.contracts.budget import BudgetWait
from septet.contracts.names import Verdict
from septet.contracts.steps import FinalizeCall, StepCall, StepResult
from workflows._cancellation import is_to_end
from workflows.hosts.host_watch import AnyStepCall
from workflows.work_order.state import WorkOrderState

_GOES_ON: Final = (
    "The work was paused for its budget, and goes on now. Look at the worktree (`git status`, `git diff`) before "
    "you do anything twice."
)
_PATCH: Final = "budget-gate"
"""Noted where one waits: a build without it cannot go on with such a work order."""


class BudgetGate:
    """Where a work order waits for a budget."""

    def __init__(self, state: WorkOrderState, show: Callable[[], None]) -> None:
        """Begin with no budget used up; `show` shows the work order where people look."""
        self._state = state
        self._show = show
        self._is_open = False

    def open(self) -> None:
        """Take it that a budget is open again; whoever waits asks once more."""
        self._is_open = True

    async def carry_out(
        self, call: AnyStepCall, take: Callable[[AnyStepCall], Awaitable[StepResult]]
    ) -> StepResult:
        """Carry an activity out, over as many waits for budgets as it takes; what they used adds up.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        earlier: StepResult | None = None
        while True:
            self._is_open = False
            result = await take(call)
            if earlier is not None and isinstance(call, StepCall):
                result = _add_earlier(result, earlier)
            if result.verdict is not Verdict.OVER_BUDGET or result.budget_wait is None:
                return result
            await self._wait(result.budget_wait)
            earlier, call = result, _go_on(call, result)

    async def _wait(self, wait: BudgetWait) -> None:
        if is_to_end():
            raise asyncio.CancelledError
        workflow.patched(_PATCH)
        self._state.wait_for_budget(wait, workflow.now())
        self._show()
        await workflow.wait_condition(lambda: self._is_open)
        self._state.go_on("", f"the budget of {wait.scope} is open again", workflow.now())
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


def _add_earlier(result: StepResult, earlier: StepResult) -> StepResult:
    """Return a result with what the runs before the wait used."""
    return result.model_copy(
        update={
            "usage": result.usage.plus(earlier.usage),
            "duration_seconds": round(result.duration_seconds + earlier.duration_seconds, 3),
            "session_id": result.session_id or earlier.session_id,
            "checkpoint": result.checkpoint or earlier.checkpoint,
        }
    )
