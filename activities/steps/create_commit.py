"""Step 6: commit the work."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class CreateCommit:
    """`result_text` is the commit's message; `commit_sha` is the commit."""

    runner: StepRunner

    @activity.defn(name="create_commit")
    async def run(self, call: StepCall) -> StepResult:
        """Commit the work. Idempotent: a clean tree stays as it is. Leaves the commit in the workspace."""
        return await self.runner.run(call)
