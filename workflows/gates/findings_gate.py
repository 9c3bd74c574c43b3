"""The gate before a commit or push with keys or protected paths: a person lets them pass or has them taken out."""

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
    """Where a work order waits with findings for a person's word."""

    def __init__(self, state: AsksPerson, show: Callable[[], None]) -> None:
        """Begin with nothing found and nothing allowed; `show` shows the work order where people look."""
        super().__init__(state, show)
        self.rejects = False
        """Whether the last word was that the agent takes something out."""
        self.allowed: tuple[str, ...] = ()
        """The ids of what people have let pass."""

    async def wait_for_words(self, findings: tuple[KeyFinding, ...]) -> str:
        """Wait until a person has let all findings pass, or rejected them; return the feedback for the agent.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
        self.rejects = False
        return await self._wait(lambda: self._state.wait_for_findings(findings, workflow.now()))

    def check(self, decision: FindingsDecision, *, rejects: bool) -> None:
        """Refuse a decision where nothing waits, on what is not found, and a rejection that does not say why."""
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
        """Take a decision that was checked; return the work order as it is now: it waits on with what is left."""
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
