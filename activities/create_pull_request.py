"""Step 7: push the branch and open the pull request."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._proof import Proof, UnprovenError
from activities._way import Way
from septet.contracts.answers import CreatePullRequestAnswer, PullRequestText, PullRequestUrl
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.place import Place


@dataclass(frozen=True, slots=True)
class CreatePullRequest:
    """`result_text` is the pull request's address."""

    way: Way
    step: ClassVar[Step] = Step.CREATE_PULL_REQUEST

    @activity.defn(name="create_pull_request")
    async def run(self, call: StepCall) -> StepResult:
        """Open the pull request. Idempotent: it looks before it pushes or opens. Leaves both on the forge."""
        return await self.way.walk(call, self.prove)

    def prove(self, call: StepCall, place: Place, answer: CreatePullRequestAnswer) -> Proof:
        """Push the commit, find or open the one pull request of the branch, and compare it with the commit."""
