"""Step 4: name the branch and check it out."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import GenerateBranchAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError
from septet.git.branches import branch_refusal, create_branch


@dataclass(frozen=True, slots=True)
class GenerateBranch:
    """`result_text` is the branch's name."""

    way: StepRunner
    step: ClassVar[Step] = Step.GENERATE_BRANCH

    @activity.defn(name="generate_branch")
    async def run(self, call: StepCall) -> StepResult:
        """Name the branch. Idempotent: a branch that is checked out stays. Leaves it in the workspace."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[GenerateBranchAnswer]) -> Proof:
        """Check name and remote, and make it the worktree's branch where the agent has not."""
        name = claim.answer.branch_name
        if refusal := branch_refusal(
            claim.place, name, token=self.way.host.token_for(claim.call.workspace.repository)
        ):
            raise EvidenceError(refusal)
        claim.gate.check()
        create_branch(claim.place, name)
        return Proof(name, warnings=_unusual(claim.call, name))


def _unusual(call: StepCall, name: str) -> tuple[str, ...]:
    """Warn of a name that nobody finds by its work order; a repository may have its own custom."""
    order_id = call.workspace.work_order_id
    return () if order_id in name else (f"the branch's name does not hold the work order's id, {order_id}",)
