"""Step 6: commit the work."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._checks import failed_check
from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import CreateCommitAnswer
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError
from septet.git.commit import commit_all
from septet.git.worktree_status import WorktreeStatus


@dataclass(frozen=True, slots=True)
class CreateCommit:
    """`result_text` is the commit's message; `commit_sha` is the commit."""

    way: StepRunner
    step: ClassVar[Step] = Step.CREATE_COMMIT

    @activity.defn(name="create_commit")
    async def run(self, call: StepCall) -> StepResult:
        """Commit the work. Idempotent: a clean tree stays as it is. Leaves the commit in the workspace."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[CreateCommitAnswer]) -> Proof:
        """Run the repository's own checks, commit what the agent has not, and see that HEAD moved."""
        if failed := failed_check(claim.place, claim.settings, self.way.host.agents):
            raise EvidenceError(failed)
        message, sign = claim.answer.commit_message, self.way.host.settings.sign_commits
        claim.gate.check()
        sha = commit_all(claim.place, message, sign=sign, toured=claim.toured)
        if sha == claim.began_at:
            raise EvidenceError("HEAD is where the work began: there is nothing to commit.")
        return Proof(message, commit_sha=sha, standing=WorktreeStatus(sha, ()))
