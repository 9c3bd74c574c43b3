"""Step 3: find the plan's file."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Final

from temporalio import activity

from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import FindPlanFileAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.evidence import plan_file

NONE: Final = "0"
"""What the agent answers when there is no plan."""


@dataclass(frozen=True, slots=True)
class FindPlanFile:
    """`result_text` is the plan's path, or `0`."""

    way: StepRunner
    step: ClassVar[Step] = Step.FIND_PLAN_FILE

    @activity.defn(name="find_plan_file")
    async def run(self, call: StepCall) -> StepResult:
        """Find the plan. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[FindPlanFileAnswer]) -> Proof:
        """Look whether the file is there; `0` is an answer too, and the workflow plans once more."""
        path = claim.answer.plan_path
        if path == NONE:
            return Proof(NONE)
        found = plan_file(claim.place, path)
        with (claim.place.worktree / found).open("rb") as file:
            return Proof(found, plan_sha256=hashlib.file_digest(file, "sha256").hexdigest())
