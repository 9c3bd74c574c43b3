"""Step 2: write the plan into a file of the worktree."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._errands import Claim
from activities._proof import Proof
from activities._way import Way
from septet.contracts.answers import BuildPlanAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.evidence import plan_file


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """`result_text` is the plan's path, relative to the worktree's root."""

    way: Way
    step: ClassVar[Step] = Step.BUILD_PLAN

    @activity.defn(name="build_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Plan the work. Idempotent: a finished run is read again. Leaves the plan in the worktree."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[BuildPlanAnswer]) -> Proof:
        """Look at the plan: a file with something in it, inside the worktree, and no symlink out of it."""
        return Proof(plan_file(claim.place, claim.answer.plan_path))
