"""Step 3: find the plan's file."""

from dataclasses import dataclass
from typing import ClassVar, Final

from temporalio import activity

from activities._proof import Proof, planned
from activities._way import Way
from septet.contracts.answers import FindPlanFileAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.place import Place

NONE: Final = "0"
"""What the agent answers when there is no plan."""


@dataclass(frozen=True, slots=True)
class FindPlanFile:
    """`result_text` is the plan's path, or `0`."""

    way: Way
    step: ClassVar[Step] = Step.FIND_PLAN_FILE

    @activity.defn(name="find_plan_file")
    async def run(self, call: StepCall) -> StepResult:
        """Find the plan. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.way.walk(call, self.prove)

    def prove(self, call: StepCall, place: Place, answer: FindPlanFileAnswer) -> Proof:
        """Look whether the file is there; `0` is an answer, and the workflow plans once more."""
        del call
        return Proof(NONE if answer.plan_path == NONE else planned(place, answer.plan_path))
