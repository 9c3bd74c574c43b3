"""Step 5: carry out the plan; inside a pipeline, its solution."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class ImplementPlan:
    """`result_text` is a summary of the work."""

    runner: StepRunner

    @activity.defn(name="implement_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Carry out the plan. Idempotent: a finished run is read again.

        Leaves the changes in the worktree, and for a pipeline a record in `STATE/pipelines/<pipeline>/executions`.
        """
        return await self.runner.run(call)
