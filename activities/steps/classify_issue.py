"""Step 1: classify the issue as a bug, a feature or a chore."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class ClassifyIssue:
    """`result_text` is `/bug`, `/feature` or `/chore`."""

    runner: StepRunner

    @activity.defn(name="classify_issue")
    async def run(self, call: StepCall) -> StepResult:
        """Classify the issue. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.runner.run(call)
