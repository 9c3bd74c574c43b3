"""End a cancelled work order whose step could not end it: the worker was dead, or the agent waited."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import EndCall, StepResult


@dataclass(frozen=True, slots=True)
class EndWork:
    """Runs on the host of the workspace, as the steps do."""

    runner: StepRunner

    @activity.defn(name="end_work")
    async def run(self, call: EndCall) -> StepResult:
        """End a cancelled step's agent and keep its work. Idempotent. Leaves a rescue of the worktree."""
        return await self.runner.end(call)
