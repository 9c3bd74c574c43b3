"""The gate after the plan: a person reads it, and approves or rejects it."""

import asyncio
from collections.abc import Callable

from temporalio import workflow

from septet.contracts.decisions import PlanDecision
from septet.contracts.task import Task
from workflows._cancellation import is_to_end
from workflows._refusals import refusal
from workflows.work_order.state import WorkOrderState


class PlanGate:
    """Where a work order waits with its plan for a person's word."""

    def __init__(self, state: WorkOrderState, show: Callable[[], None]) -> None:
        """Begin without a plan; `show` shows the work order where people look."""
        self._state = state
        self._show = show
        self._is_waiting = False
        self._feedback = ""

    async def wait_for_feedback(self) -> str:
        """Wait for a decision on the plan; return what a person wants otherwise: nothing when it is approved.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        if is_to_end():
            raise asyncio.CancelledError
        self._is_waiting, self._feedback = True, ""
        self._state.wait_for_decision(workflow.now())
        self._show()
        try:
            await workflow.wait_condition(lambda: not self._is_waiting)
        finally:
            self._is_waiting = False
        return self._feedback

    def check(self, decision: PlanDecision, *, rejects: bool) -> None:
        """Refuse a decision where no plan waits, on another plan, and a rejection that does not say why."""
        task = self._state.task
        if not self._is_waiting:
            raise refusal(f"{task.id} is not waiting for a decision on a plan: it is {task.status.value}.")
        if decision.plan_sha256 != task.plan_sha256:
            raise refusal(
                f"{task.id} is waiting with a different plan, not {decision.plan_sha256}.",
                f"Read {task.plan_path}, and decide on the plan with SHA-256 {task.plan_sha256}.",
            )
        if rejects and not decision.feedback.strip():
            raise refusal(
                "A rejection needs feedback.", "Say in `feedback` what the planner should do differently."
            )

    def decide(self, decision: PlanDecision, *, rejects: bool) -> Task:
        """Take a decision that was checked; return the work order as it is now."""
        self._is_waiting = False
        self._feedback = decision.feedback if rejects else ""
        decision_text = f"the plan is rejected: {decision.feedback}" if rejects else "the plan is approved"
        why = f"{decision_text} ({decision.why})" if decision.why else decision_text
        self._state.go_on(decision.who, why, workflow.now())
        self._show()
        return self._state.task
