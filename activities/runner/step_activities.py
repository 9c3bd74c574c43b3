"""The activities of a work order's steps: each runs one step on this host."""

from dataclasses import dataclass

from temporalio import activity

from activities.outgoing.leaving_content import is_here
from activities.runner.step_runner import StepRunner
from septet.contracts.names import Verdict
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.system.threads import shielded_thread


@dataclass(frozen=True, slots=True)
class StepActivities:
    """The activities of the steps. The docstring of each step says what its `result_text` is."""

    runner: StepRunner

    @activity.defn(name="classify_issue")
    async def classify_issue(self, call: StepCall) -> StepResult:
        """Classify the issue, and return `/bug`, `/feature` or `/chore`.

        Idempotent: a retry reads a finished run again. Leaves the run's files on disk.
        """
        return await self.runner.run(call)

    @activity.defn(name="build_plan")
    async def build_plan(self, call: StepCall) -> StepResult:
        """Plan the work, and return the plan's path in the worktree. Idempotent: a finished run is read again.

        Leaves the plan in the worktree, and a pipeline's solution in `STATE/pipelines/<pipeline>/solutions`.
        """
        return await self.runner.run(call)

    @activity.defn(name="find_plan_file")
    async def find_plan_file(self, call: StepCall) -> StepResult:
        """Return the plan's path; `0` if the agent found no plan.

        Idempotent: a finished run is read again. Leaves the run's files on disk.
        """
        return await self.runner.run(call)

    @activity.defn(name="generate_branch")
    async def generate_branch(self, call: StepCall) -> StepResult:
        """Create the branch, and return its name. Idempotent: a checked-out branch stays. Leaves the branch."""
        return await self.runner.run(call)

    @activity.defn(name="implement_plan")
    async def implement_plan(self, call: StepCall) -> StepResult:
        """Carry out the plan, and return a summary of the work. Idempotent: a finished run is read again.

        Leaves the changes in the worktree, and for a pipeline a record in `STATE/pipelines/<pipeline>/executions`.
        """
        return await self.runner.run(call)

    @activity.defn(name="create_commit")
    async def create_commit(self, call: StepCall) -> StepResult:
        """Commit the work, and return the commit's message, and its hash in `commit_sha`.

        Idempotent: a clean tree stays as it is. Leaves the commit in the workspace.
        """
        return await self.runner.run(call)

    @activity.defn(name="create_pull_request")
    async def create_pull_request(self, call: StepCall) -> StepResult:
        """Open the pull request, and return its address. Idempotent: the forge is read before each effect.

        Leaves the branch and the pull request on the forge.
        """
        return await self.runner.run(call)

    @activity.defn(name="rework")
    async def rework(self, call: StepCall) -> StepResult:
        """Let an agent answer checks, reviews and conflicts, and return a summary of the work.

        Idempotent: a finished run is read again. Leaves answers on the forge, and a commit that is pushed only if
        the branch is still at the commit from which the round began.
        """
        return await self.runner.run(call)

    @activity.defn(name="read_outgoing")
    async def read_outgoing(self, call: StepCall) -> StepResult:
        """Run the reader, and return the reader's suspicions as the result's `findings`.

        Idempotent: a finished run is read again. Leaves the run's files on disk.
        """
        host = self.runner.host
        if not await shielded_thread(host.threads.disk, is_here, host, call):
            reasons = ("The work to read is on another host.",)
            return StepResult(step=call.step, verdict=Verdict.UNPROVEN, reasons=reasons)
        return await self.runner.run(call)

    @activity.defn(name="finalize_json")
    async def finalize_json(self, request: FinalizeCall) -> StepResult:
        """Request a step's answer as JSON, return the completed result, and undo each change of the worktree.

        Idempotent: a finished run is read again. Leaves the run's files on disk.
        """
        return await self.runner.finalize(request)

    @activity.defn(name="end_work")
    async def end_work(self, call: EndCall) -> StepResult:
        """End a cancelled step's agent on the workspace's host. Idempotent. Leaves a rescue of the worktree."""
        return await self.runner.end(call)
