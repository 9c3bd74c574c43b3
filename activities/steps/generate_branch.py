"""Step 4: name the branch and check it out."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class GenerateBranch:
    """`result_text` is the branch's name."""

    runner: StepRunner

    @activity.defn(name="generate_branch")
    async def run(self, call: StepCall) -> StepResult:
        """Name the branch. Idempotent: a branch that is checked out stays. Leaves the branch in the workspace."""
        return await self.runner.run(call)
