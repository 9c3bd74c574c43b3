"""Step 4: name the branch and check it out."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._proof import Proof, UnprovenError
from activities._way import Way
from septet.contracts.answers import GenerateBranchAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.place import Place


@dataclass(frozen=True, slots=True)
class GenerateBranch:
    """`result_text` is the branch's name."""

    way: Way
    step: ClassVar[Step] = Step.GENERATE_BRANCH

    @activity.defn(name="generate_branch")
    async def run(self, call: StepCall) -> StepResult:
        """Name the branch. Idempotent: a branch that is checked out stays. Leaves it in the workspace."""
        return await self.way.walk(call, self.prove)

    def prove(self, call: StepCall, place: Place, answer: GenerateBranchAnswer) -> Proof:
        """Check name and remote, and make the branch the worktree's own where the agent has not."""
        name = answer.branch_name
        if refusal := branch_refusal(place, name):
            raise UnprovenError(refusal)
        create_branch(place, name)
        return Proof(name, warnings=_unusual(call, name))


def _unusual(call: StepCall, name: str) -> tuple[str, ...]:
    """Warn of a name that a person would not find again by work order; a repository may have its own custom."""
    return () if call.workspace.work_order_id in name else ("the branch's name does not hold the work order's id",)
