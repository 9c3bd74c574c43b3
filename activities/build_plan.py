"""Step 2: write the plan into a file of the worktree; inside a pipeline, find a solution."""

from dataclasses import dataclass
from typing import ClassVar

from temporalio import activity

from activities._pipeline import issue_id, shelf
from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import BuildPlanAnswer
from septet.contracts.names import Step
from septet.contracts.solution import SolutionAnswer
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError
from septet.git.evidence import plan_file
from septet.pipelines.outline import outline_of
from septet.pipelines.solution import IssueScope, findings, findings_text


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """`result_text` is the plan's path, relative to the worktree's root."""

    way: StepRunner
    step: ClassVar[Step] = Step.BUILD_PLAN

    @activity.defn(name="build_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Plan the work. Idempotent: a finished run is read again.

        Leaves the plan in the worktree, and a pipeline's solution in `STATE/pipelines/<pipeline>/solutions`.
        """
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[BuildPlanAnswer | SolutionAnswer]) -> Proof:
        """Look at the plan: a file with something in it, inside the worktree, and no symlink out of it.

        Raises:
            EvidenceError: It is not, or the solution has findings: all of them.
        """
        path = plan_file(claim.place, claim.answer.plan_path)
        if not isinstance(claim.answer, SolutionAnswer):
            return Proof(path)
        return self._accepted(claim, claim.answer, path)

    def _accepted(
        self, claim: Claim[BuildPlanAnswer | SolutionAnswer], solution: SolutionAnswer, path: str
    ) -> Proof:
        """Judge a solution, and keep it whole on disk; the workflow remembers its outline."""
        call = claim.call
        if found := findings(solution, IssueScope(issue_id(call), path, claim.place.worktree)):
            raise EvidenceError(findings_text(found))
        claim.gate.lease.check()
        shelf(self.way.host.state, call).keep_solution(issue_id(call), solution)
        return Proof(path, outline=outline_of(solution))
