"""Step 5: carry out the plan."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._proof import Proof, RefusedError, UnprovenError
from activities._way import Way
from septet.contracts.answers import ImplementPlanAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.place import Place


@dataclass(frozen=True, slots=True)
class ImplementPlan:
    """`result_text` is a summary of what was done."""

    way: Way
    step: ClassVar[Step] = Step.IMPLEMENT_PLAN

    @activity.defn(name="implement_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Carry out the plan. Idempotent: a finished run is read again. Leaves the changes in the worktree."""
        return await self.way.walk(call, self.prove)

    def prove(self, call: StepCall, place: Place, answer: ImplementPlanAnswer) -> Proof:
        """See that something changed beyond the plan; commits of the agent are kept."""
        if not answer.success:
            raise RefusedError(f"the agent says that the work failed: {answer.summary}")
        if not changed_beyond(place, call.progress.plan_path):
            raise UnprovenError("nothing changed beyond the plan's file, though the answer says success")
        return Proof(answer.summary)
