"""Step 2: write the plan into a file of the worktree; inside a pipeline, find a solution."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """`result_text` is the plan's path, relative to the worktree's root."""

    runner: StepRunner

    @activity.defn(name="build_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Plan the work. Idempotent: a finished run is read again.

        Leaves the plan in the worktree, and a pipeline's solution in `STATE/pipelines/<pipeline>/solutions`.
        """
        return await self.runner.run(call)
