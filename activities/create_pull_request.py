"""Step 7: push the branch and open the pull request."""

from dataclasses import dataclass, replace
from typing import ClassVar

from temporalio import activity

from activities._keeping import expect_hold
from activities._prepared_steps import Claim
from activities._proof import Proof
from activities._way import StepRunner
from septet.contracts.answers import CreatePullRequestAnswer, PullRequestText
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult
from septet.errors import EvidenceError, ForgeError, ForgeUnavailableError, NotFoundError
from septet.forges.forge import Forge, NewPullRequest, PullRequest
from septet.git.push import push, remote_branch


@dataclass(frozen=True, slots=True)
class CreatePullRequest:
    """`result_text` is the pull request's address."""

    way: StepRunner
    step: ClassVar[Step] = Step.CREATE_PULL_REQUEST

    @activity.defn(name="create_pull_request")
    async def run(self, call: StepCall) -> StepResult:
        """Open the pull request. Idempotent: it looks before it pushes or opens. Leaves both on the forge."""
        return await self.way.walk(call, self.prove)

    def prove(self, claim: Claim[CreatePullRequestAnswer]) -> Proof:
        """Push the commit, find or open the one pull request of the branch, and hold it against the commit.

        Raises:
            EvidenceError: There is no commit, or the pull request stands at another one.
            MovedError: The work order goes on on another host: nothing is pushed from here.
        """
        call, progress = claim.call, claim.call.progress
        if progress.branch_name is None or progress.commit_sha is None:
            raise EvidenceError("There is no commit to open a pull request for.")
        expect_hold(self.way.host, claim.place)
        address, forge = self.way.host.forge(call.workspace.repository)
        token = self.way.host.token(address)
        there = remote_branch(claim.place, progress.branch_name, token=token)
        claim.gate.check()
        sha = push(claim.place, progress.branch_name, progress.commit_sha, expected=there, token=token)
        claim.gate.check()
        found = forge.find_pull_request(progress.branch_name)
        opened = _told(forge, found, claim) if found is not None else forge.open_pull_request(_new(claim))
        if opened.head_sha not in {"", sha}:
            raise EvidenceError(f"{opened.url} stands at {opened.head_sha}, and the branch at {sha}.")
        lacking = tuple(filter(None, [_lacking(call.workspace.lacks)]))
        return Proof(opened.url, commit_sha=sha, warnings=(*opened.warnings, *lacking))


def _told(forge: Forge, found: PullRequest, claim: Claim[CreatePullRequestAnswer]) -> PullRequest:
    """Return the pull request that is there; where others' work is in its branch too, it tells of this one."""
    if not claim.call.workspace.began_at:
        return found
    try:
        forge.add_to_pull_request(found.number, _new(claim))
    except ForgeUnavailableError:
        raise
    except (ForgeError, NotFoundError) as error:  # the work is there all the same
        return replace(found, warnings=(f"{found.url} does not tell of this work order: {error}",))
    return found


def _new(claim: Claim[CreatePullRequestAnswer]) -> NewPullRequest:
    """Return what the pull request is opened with: the agent's words, or the commit's where it gave only a URL."""
    call, answer = claim.call, claim.answer
    written = answer if isinstance(answer, PullRequestText) else None
    said = (written.body if written else "", _lacking(call.workspace.lacks))
    return NewPullRequest(
        head=call.progress.branch_name or "",
        base=call.workspace.base_branch,
        title=written.title if written else call.workspace.issue_title,
        body="\n\n".join(filter(None, said)),
        marker=call.workspace.work_order_id,
        draft=call.draft,
        labels=call.labels,
    )


def _lacking(branches: tuple[str, ...]) -> str:
    """Return what a person must know before merging who sees this branch alone; nothing where it holds all."""
    if not branches:
        return ""
    named = ", ".join(f"`{branch}`" for branch in branches)
    return f"This also depends on {named}, whose work is not in this branch: merge that first, then test together."
