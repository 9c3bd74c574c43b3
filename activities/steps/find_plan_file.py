"""Step 3: find the plan's file."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class FindPlanFile:
    """`result_text` is the plan's path, or `0`."""

    runner: StepRunner

    @activity.defn(name="find_plan_file")
    async def run(self, call: StepCall) -> StepResult:
        """Find the plan. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.runner.run(call)
