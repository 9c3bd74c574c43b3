"""The gate after the plan: a person reads it, and approves or rejects it."""

import asyncio
from collections.abc import Callable

from temporalio import workflow

from septet.contracts.decisions import PlanDecision
from septet.contracts.task import Task
from workflows._refusals import refused
from workflows.work_order._hosts import is_to_end
from workflows.work_order.state import WorkOrderState


class PlanGate:
    """Where a work order waits with its plan for a person's word."""

    def __init__(self, story: WorkOrderState, tell: Callable[[], None]) -> None:
        """Begin without a plan; `tell` shows the story where people look."""
        self._story = story
        self._tell = tell
        self._waits = False
        self._feedback = ""

    async def feedback(self) -> str:
        """Wait for a decision on the plan; return what a person wants otherwise: nothing when it is approved.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        if is_to_end():
            raise asyncio.CancelledError
        self._waits, self._feedback = True, ""
        self._story.plan_waits(workflow.now())
        self._tell()
        try:
            await workflow.wait_condition(lambda: not self._waits)
        finally:
            self._waits = False
        return self._feedback

    def check(self, decision: PlanDecision, *, rejects: bool) -> None:
        """Refuse a decision where no plan waits, on another plan, and a rejection that does not say why."""
        task = self._story.task
        if not self._waits:
            raise refused(f"{task.id} does not wait for a decision on a plan: it is {task.status.value}.")
        if decision.plan_sha256 != task.plan_sha256:
            raise refused(
                f"{task.id} waits with another plan than {decision.plan_sha256}.",
                f"Read {task.plan_path}, and decide on the plan with SHA-256 {task.plan_sha256}.",
            )
        if rejects and not decision.feedback.strip():
            raise refused("A rejection needs feedback.", "Say in `feedback` what the planner is to do otherwise.")

    def decide(self, decision: PlanDecision, *, rejects: bool) -> Task:
        """Take a decision that was checked; return the work order as it is now."""
        self._waits = False
        self._feedback = decision.feedback if rejects else ""
        said = f"the plan is rejected: {decision.feedback}" if rejects else "the plan is approved"
        why = f"{said} ({decision.why})" if decision.why else said
        self._story.goes_on(decision.who, why, workflow.now())
        self._tell()
        return self._story.task
