"""The gate after the plan: a person approves or rejects it."""

from temporalio import workflow

from septet.contracts.decisions import PlanDecision
from septet.contracts.task import Task
from workflows.gates.person_gate import PersonGate, check_feedback
from workflows.wire.refusals import refusal


class PlanGate(PersonGate):
    """A work order's wait for a person's decision on its plan."""

    async def wait_for_feedback(self) -> str:
        """Wait for a decision on the plan; return the feedback, empty if the plan is approved.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        return await self._wait(lambda: self._state.wait_for_decision(workflow.now()))

    def check(self, decision: PlanDecision, *, rejects: bool) -> None:
        """Refuse a decision if no plan waits, on another plan, or that rejects without feedback."""
        self._check_waits("a plan")
        task = self._state.task
        if decision.plan_sha256 != task.plan_sha256:
            raise refusal(
                f"{task.id} is waiting with a different plan, not {decision.plan_sha256}.",
                f"Read {task.plan_path}, and decide on the plan with SHA-256 {task.plan_sha256}.",
            )
        if rejects:
            check_feedback(decision, "planner")

    def decide(self, decision: PlanDecision, *, rejects: bool) -> Task:
        """Apply a checked decision, and return the work order."""
        self._feedback = decision.feedback if rejects else ""
        self._go_on(decision, f"the plan is rejected: {decision.feedback}" if rejects else "the plan is approved")
        return self._state.task
