"""A gate at which a work order waits for a person's decision: the base of the plan's and the findings' gate."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from temporalio import workflow

from septet.contracts.decisions import FindingsDecision, PlanDecision
from septet.contracts.facts import KeyFinding
from septet.contracts.task import Task
from workflows.wire.cancellation import is_to_end
from workflows.wire.refusals import refusal


class AsksPerson(Protocol):
    """The state of a work order that waits for a person's decision."""

    @property
    def task(self) -> Task:
        """The work order, as people see it."""

    def wait_for_decision(self, now: datetime) -> None:
        """Record the wait with a plan."""

    def wait_for_findings(self, findings: tuple[KeyFinding, ...], now: datetime) -> None:
        """Record the wait with findings."""

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Record the end of the wait."""


class PersonGate:
    """A work order's wait for a person's decision."""

    def __init__(self, state: AsksPerson, show: Callable[[], None]) -> None:
        """Start without a wait; `show` shows the work order to people."""
        self._state = state
        self._show = show
        self._is_waiting = False
        self._feedback = ""

    async def _wait(self, ask: Callable[[], None]) -> str:
        """Record the question with `ask`, wait for the decision, and return the feedback for the agent.

        Raises:
            asyncio.CancelledError: The work order is to end.
        """
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
        """Refuse a decision that the work order does not wait for."""
        task = self._state.task
        if not self._is_waiting:
            raise refusal(f"{task.id} is not waiting for a decision on {on}: it is {task.status.value}.")

    def _go_on(self, decision: PlanDecision | FindingsDecision, what: str) -> None:
        """End the wait, and record who decided what, and why."""
        self._is_waiting = False
        why = f"{what} ({decision.why})" if decision.why else what
        self._state.go_on(decision.who, why, workflow.now())
        self._show()


def check_feedback(decision: PlanDecision | FindingsDecision, agent: str) -> None:
    """Refuse a rejection without feedback for the agent."""
    if not decision.feedback.strip():
        raise refusal("A rejection needs feedback.", f"Say in `feedback` what the {agent} should do differently.")
