"""The gate before a commit or push with keys or protected paths: a person allows or rejects the findings."""

from collections.abc import Callable
from typing import Final

from temporalio import workflow

from septet.contracts.decisions import FindingsDecision
from septet.contracts.facts import KeyFinding, tell_findings
from septet.contracts.task import Task
from workflows.gates.person_gate import AsksPerson, PersonGate, check_feedback
from workflows.wire.refusals import refusal

FINDINGS_UPDATES: Final = "Or use the update `approve_findings` or `reject_findings`."


class FindingsGate(PersonGate):
    """A work order's wait for a person's decision on findings."""

    def __init__(self, state: AsksPerson, show: Callable[[], None]) -> None:
        """Start without a finding; `show` shows the work order to people."""
        super().__init__(state, show)
        self.rejects = False
        """Whether the last decision was a rejection."""
        self.allowed: tuple[str, ...] = ()
        """The ids of the findings that people have allowed."""

    async def wait_for_words(self, findings: tuple[KeyFinding, ...]) -> str:
        """Wait until a person allowed all findings or rejected them; return the feedback for the agent.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        self.rejects = False
        return await self._wait(lambda: self._state.wait_for_findings(findings, workflow.now()))

    def check(self, decision: FindingsDecision, *, rejects: bool) -> None:
        """Refuse a decision if no finding waits, on an unknown finding, or that rejects without feedback."""
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
