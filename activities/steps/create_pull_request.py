"""Step 7: push the branch and open the pull request."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class CreatePullRequest:
    """`result_text` is the pull request's address."""

    runner: StepRunner

    @activity.defn(name="create_pull_request")
    async def run(self, call: StepCall) -> StepResult:
        """Open the pull request. Idempotent: the forge is read before each effect.

        Leaves the branch and the pull request on the forge.
        """
        return await self.runner.run(call)
