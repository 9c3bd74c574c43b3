"""The finalizer: request the answer alone from a step's session, as JSON, without tools."""

from dataclasses import dataclass

from temporalio import activity

from activities.steps.step_runner import StepRunner
from septet.contracts.steps import FinalizeCall, StepResult


@dataclass(frozen=True, slots=True)
class FinalizeJson:
    """Completes the result of a step; undoes each change of the worktree."""

    runner: StepRunner

    @activity.defn(name="finalize_json")
    async def run(self, request: FinalizeCall) -> StepResult:
        """Request the JSON. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.runner.finalize(request)
