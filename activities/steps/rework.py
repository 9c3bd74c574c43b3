"""After the seven: answer what happens on the pull request, in the implementor's session."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class ReworkPullRequest:
    """`result_text` is a summary of what was done."""

    runner: StepRunner

    @activity.defn(name="rework")
    async def run(self, call: StepCall) -> StepResult:
        """Have an agent answer checks, reviews and conflicts. Idempotent: a finished run is read again.

        Leaves a commit, pushed with a lease on the one that the round began from, and the answers on the forge.
        """
        return await self.runner.run(call)
