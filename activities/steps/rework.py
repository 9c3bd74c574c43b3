"""After the seven steps: answer events on the pull request, in the implementor's session."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class ReworkPullRequest:
    """`result_text` is a summary of the work."""

    runner: StepRunner

    @activity.defn(name="rework")
    async def run(self, call: StepCall) -> StepResult:
        """Let an agent answer checks, reviews and conflicts. Idempotent: a finished run is read again.

        Leaves a commit, pushed with a lease on the commit from which the round began, and answers on the forge.
        """
        return await self.runner.run(call)
