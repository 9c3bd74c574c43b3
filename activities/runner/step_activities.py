"""The activities of a work order's steps: each runs one step on this host."""

from dataclasses import dataclass

from temporalio import activity

from activities.outgoing.reading import is_here
from activities.runner.step_runner import StepRunner
from septet.contracts.names import Verdict
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.system.threads import shielded_thread


@dataclass(frozen=True, slots=True)
class ClassifyIssue:
    """`result_text` is `/bug`, `/feature` or `/chore`."""

    runner: StepRunner

    @activity.defn(name="classify_issue")
    async def run(self, call: StepCall) -> StepResult:
        """Classify the issue. Idempotent: a retry reads a finished run again. Leaves the run's files on disk."""
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """`result_text` is the plan's path, relative to the worktree's root."""

    runner: StepRunner

    @activity.defn(name="build_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Plan the work. Idempotent: a finished run is read again.

        Leaves the plan in the worktree, and a pipeline's solution in `STATE/pipelines/<pipeline>/solutions`.
        """
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class FindPlanFile:
    """`result_text` is the plan's path, or `0`."""

    runner: StepRunner

    @activity.defn(name="find_plan_file")
    async def run(self, call: StepCall) -> StepResult:
        """Find the plan. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class GenerateBranch:
    """`result_text` is the branch's name."""

    runner: StepRunner

    @activity.defn(name="generate_branch")
    async def run(self, call: StepCall) -> StepResult:
        """Name the branch. Idempotent: a branch that is checked out stays. Leaves the branch in the workspace."""
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class ImplementPlan:
    """`result_text` is a summary of the work."""

    runner: StepRunner

    @activity.defn(name="implement_plan")
    async def run(self, call: StepCall) -> StepResult:
        """Carry out the plan. Idempotent: a finished run is read again.

        Leaves the changes in the worktree, and for a pipeline a record in `STATE/pipelines/<pipeline>/executions`.
        """
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class CreateCommit:
    """`result_text` is the commit's message; `commit_sha` is the commit."""

    runner: StepRunner

    @activity.defn(name="create_commit")
    async def run(self, call: StepCall) -> StepResult:
        """Commit the work. Idempotent: a clean tree stays as it is. Leaves the commit in the workspace."""
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class CreatePullRequest:
    """`result_text` is the pull request's address."""

    runner: StepRunner

    @activity.defn(name="create_pull_request")
    async def run(self, call: StepCall) -> StepResult:
        """Open the pull request. Idempotent: the forge is read before each effect.

        Leaves the branch and the pull request on the forge.
        """
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class ReworkPullRequest:
    """`result_text` is a summary of the work."""

    runner: StepRunner

    @activity.defn(name="rework")
    async def run(self, call: StepCall) -> StepResult:
        """Let an agent answer checks, reviews and conflicts. Idempotent: a finished run is read again.

        Leaves a commit, pushed with a lease on the commit from which the round began, and answers on the forge.
        """
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class ReadOutgoing:
    """`findings` of the result are the reader's suspicions."""

    runner: StepRunner

    @activity.defn(name="read_outgoing")
    async def run(self, call: StepCall) -> StepResult:
        """Run the reader. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        host = self.runner.host
        if not await shielded_thread(host.threads.disk, is_here, host, call):
            reasons = ("The work to read is on another host.",)
            return StepResult(step=call.step, verdict=Verdict.UNPROVEN, reasons=reasons)
        return await self.runner.run(call)


@dataclass(frozen=True, slots=True)
class FinalizeJson:
    """Completes the result of a step, and undoes each change of the worktree."""

    runner: StepRunner

    @activity.defn(name="finalize_json")
    async def run(self, request: FinalizeCall) -> StepResult:
        """Request the JSON. Idempotent: a finished run is read again. Leaves the run's files on disk."""
        return await self.runner.finalize(request)


@dataclass(frozen=True, slots=True)
class EndWork:
    """Ends a cancelled step; runs on the host of the workspace, as the steps do."""

    runner: StepRunner

    @activity.defn(name="end_work")
    async def run(self, call: EndCall) -> StepResult:
        """End a cancelled step's agent and keep its work. Idempotent. Leaves a rescue of the worktree."""
        return await self.runner.end(call)
