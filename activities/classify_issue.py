"""Step 1: say whether the issue is a bug, a feature or a chore."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import ClassifyIssueAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult


@dataclass(frozen=True, slots=True)
class ClassifyIssue:
    """`result_text` is `/bug`, `/feature` or `/chore`."""

    way: StepRunner
    step: ClassVar[Step] = Step.CLASSIFY_ISSUE

    @activity.defn(name="classify_issue")
    async def run(self, call: StepCall) -> StepResult:
        """Classify the issue. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[ClassifyIssueAnswer]) -> Proof:
        """Take the class as it is: its contract is the enumeration."""
        return Proof(claim.answer.issue_class)
