"""Let work wait for a person's decision on a plan or on findings, or for a budget."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from temporalio import workflow

from septet.contracts.amounts import BudgetWait
from septet.contracts.decisions import FindingsDecision, PlanDecision
from septet.contracts.facts import KeyFinding, tell_findings
from septet.contracts.task import Task
from workflows.wire.cancellation import is_to_end
from workflows.wire.failures import refusal


class Waiting(Protocol):
    """Records what some work waits for: a person's decision or a budget."""

    @property
    def task(self) -> Task:
        """The work order as people see it."""

    def wait_for_decision(self, now: datetime) -> None:
        """Record the wait for a decision on a plan."""

    def wait_for_findings(self, findings: tuple[KeyFinding, ...], now: datetime) -> None:
        """Record the wait for a decision on findings."""

    def wait_for_budget(self, wait: BudgetWait, now: datetime) -> None:
        """Record the wait for a budget."""

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Record the end of the wait."""


class PersonGate:
    """Lets a work order wait for a person's decision."""

    def __init__(self, state: Waiting, show: Callable[[], None]) -> None:
        """Create the gate; `show` publishes the work order's state for people."""
        self._state = state
        self._show = show
        self._is_waiting = False
        self._feedback = ""

    async def _wait(self, ask: Callable[[], None]) -> str:
        """Record the wait with `ask`, wait for the decision, and return the person's feedback."""
        if is_to_end():
            raise asyncio.CancelledError
        self._is_waiting, self._feedback = True, ""
        ask()
        self._show()
        try:
            await workflow.wait_condition(lambda: not self._is_waiting)
        finally:
            self._is_waiting = False
        return self._feedback

    def _check_waits(self, on: str) -> None:
        task = self._state.task
        if not self._is_waiting:
            raise refusal(f"{task.id} is not waiting for a decision on {on}: it is {task.status.value}.")

    def _go_on(self, decision: PlanDecision | FindingsDecision, what: str) -> None:
        self._is_waiting = False
        why = f"{what} ({decision.why})" if decision.why else what
        self._state.go_on(decision.who, why, workflow.now())
        self._show()


def check_feedback(decision: PlanDecision | FindingsDecision, agent: str) -> None:
    """Refuse a rejection without feedback for the agent."""
    if not decision.feedback.strip():
        raise refusal("A rejection needs feedback.", f"Say in `feedback` what the {agent} should do differently.")


FINDINGS_UPDATES: Final = "Or use the update `approve_findings` or `reject_findings`."


class FindingsGate(PersonGate):
    """Lets a work order wait for a person's decision on findings."""

    def __init__(self, state: Waiting, show: Callable[[], None]) -> None:
        """Create the gate without findings; `show` publishes the work order's state for people."""
        super().__init__(state, show)
        self.rejects = False
        self.allowed: tuple[str, ...] = ()

    async def wait_for_words(self, findings: tuple[KeyFinding, ...]) -> str:
        """Wait until a person has allowed all findings or rejected them; return the feedback for the agent.

        Raises:
            asyncio.CancelledError: The work order has to end.
        """
        self.rejects = False
        return await self._wait(lambda: self._state.wait_for_findings(findings, workflow.now()))

    def check(self, decision: FindingsDecision, *, rejects: bool) -> None:
        """Refuse a decision that names an unknown finding or rejects without feedback, or if no finding waits."""
        self._check_waits("findings")
        task = self._state.task
        known = {finding.id for finding in task.findings if finding.id}
        if unknown := sorted(set(decision.findings) - known):
            raise refusal(f"{task.id} has no open finding {unknown[0]}.", task.findings_question)
        if rejects:
            check_feedback(decision, "agent")
        elif not decision.findings:
            raise refusal(f"{task.id}: no finding is named.", task.findings_question)

    def decide(self, decision: FindingsDecision, *, rejects: bool) -> Task:
        """Apply a checked decision; return the work order, which still waits if findings are left."""
        if rejects:
            self.rejects = True
            told = tell_findings(self._state.task.findings)
            self._feedback = f"{told}. A person rejects that: {decision.feedback}"
            self._go_on(decision, f"the findings are rejected: {decision.feedback}")
            return self._state.task
        findings = self._state.task.findings
        passed = [finding for finding in findings if finding.id in decision.findings]
        self.allowed = (*self.allowed, *(finding.id for finding in passed if finding.id not in self.allowed))
        places = ", ".join(finding.where for finding in passed)
        self._feedback = "; ".join(filter(None, (self._feedback, f"a person lets this pass, leave it: {places}")))
        left = tuple(finding for finding in findings if finding not in passed)
        if left:
            self._state.wait_for_findings(left, workflow.now())
            self._show()
        else:
            self._go_on(decision, f"let pass: {places}")
        return self._state.task


class PlanGate(PersonGate):
    """Lets a work order wait for a person's decision on its plan."""

    async def wait_for_feedback(self) -> str:
        """Wait for a decision on the plan, and return the feedback; empty if the plan is approved.

        Raises:
            asyncio.CancelledError: The work order has to end.
        """
        return await self._wait(lambda: self._state.wait_for_decision(workflow.now()))

    def check(self, decision: PlanDecision, *, rejects: bool) -> None:
        """Refuse a decision if no plan waits, if it is about another plan, or if a rejection has no feedback."""
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


class BudgetGate:
    """Lets a work order or a round wait for a budget."""

    def __init__(self, waiting: Waiting, show: Callable[[], None]) -> None:
        """Create the gate; `show` publishes the waiting work's state for people."""
        self._waiting = waiting
        self._show = show
        self._is_open = False

    def open(self) -> None:
        """Record that a budget has room again; the waiting work then reserves again."""
        self._is_open = True

    def close(self) -> None:
        """Forget earlier reports of room in a budget; call this before a new reservation."""
        self._is_open = False

    async def wait(self, wait: BudgetWait) -> None:
        """Publish the wait, and wait until a budget has room again."""
        shown = wait.model_copy(update={"remedy": wait.remedy[:500]})
        self._waiting.wait_for_budget(shown, workflow.now())
        self._show()
        await workflow.wait_condition(lambda: self._is_open)
        self._waiting.go_on("", f"the budget of {wait.scope} is open again", workflow.now())
        self._show()
