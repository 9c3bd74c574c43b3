"""Step 6: commit the work."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._proof import Proof, UnprovenError
from activities._way import Way
from septet.contracts.answers import CreateCommitAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.git.commit import commit_all
from septet.git.place import Place


@dataclass(frozen=True, slots=True)
class CreateCommit:
    """`result_text` is the commit's message; `commit_sha` is the commit."""

    way: Way
    step: ClassVar[Step] = Step.CREATE_COMMIT

    @activity.defn(name="create_commit")
    async def run(self, call: StepCall) -> StepResult:
        """Commit the work. Idempotent: a clean tree stays as it is. Leaves the commit in the workspace."""
        return await self.way.walk(call, self.prove)

    def prove(self, call: StepCall, place: Place, answer: CreateCommitAnswer) -> Proof:
        """Run the repository's own checks, commit what the agent has not, and see that HEAD moved."""
        for failed in self.way.host.failed_checks(call, place):
            raise UnprovenError(failed)
        sha = commit_all(place, answer.commit_message)
        if sha == place.base_sha:
            raise UnprovenError("HEAD is still where the work began: there is nothing to commit")
        return Proof(answer.commit_message, commit_sha=sha)
