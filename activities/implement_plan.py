"""Step 5: carry out the plan."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._errands import Claim
from activities._proof import Proof, RefusedError
from activities._way import Way
from septet.contracts.answers import ImplementPlanAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError
from septet.git.evidence import keeps


@dataclass(frozen=True, slots=True)
class ImplementPlan:
    """`result_text` is a summary of what was done."""

    way: Way
    step: ClassVar[Step] = Step.IMPLEMENT_PLAN

    @activity.defn(name="implement_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Carry out the plan. Idempotent: a finished run is read again. Leaves the changes in the worktree."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[ImplementPlanAnswer]) -> Proof:
        """See that something changed beyond the plan, on the work's own branch; the agent's commits are kept."""
        progress, head = claim.call.progress, claim.evidence.head
        if not claim.answer.success:
            raise RefusedError(f"The agent says that the work failed: {claim.answer.summary}")
        if all(change.path == progress.plan_path for change in claim.evidence.files_changed):
            raise EvidenceError("Nothing changed beyond the plan's file, though the answer says success.")
        if head.branch != progress.branch_name:
            raise EvidenceError(f"HEAD is on {head.branch or 'no branch'}: go back to {progress.branch_name}.")
        if not keeps(claim.place, claim.place.base_sha):
            raise EvidenceError(f"The branch no longer holds {claim.place.base_sha}, where the work began.")
        return Proof(claim.answer.summary)
