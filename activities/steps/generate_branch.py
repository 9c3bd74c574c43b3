"""Prove step 4: check the branch's name, and create the branch if the agent has not."""

import re
from dataclasses import dataclass
from functools import partial

from activities.host.claims import Claim, Proof, prove_bare
from activities.host.host import Host
from activities.outgoing.clean_texts import has_key
from septet.agents.runs.lease import was_restored
from septet.answers.plain import bare_branches
from septet.contracts.answers import GenerateBranchAnswer
from septet.contracts.repository import FirstPart, form_refusal
from septet.contracts.steps import StepCall
from septet.errors import EvidenceError, GitError
from septet.forges.opening import own_pull_request
from septet.forges.values import ended_one
from septet.git.commits.branches import branches_of, create_branch, free_name, remote_branches, usable_name
from septet.git.commits.push import is_own_push
from septet.git.engine.remote import RemoteRefs
from septet.system.masking import mask


def prove_generate_branch(host: Host, claim: Claim[GenerateBranchAnswer]) -> Proof:
    """Check the agent's branch name, add the prefix, and check out the branch.

    After a return to an earlier step, the work order keeps the branch that it has on the forge: another branch
    would need a second pull request.

    Raises:
        UnclearAnswerError: The name is a Markdown link whose text and target differ.
        EvidenceError: The name cannot be used.
        ForgeError: The work order's pull request has ended.
        GitError: The work order's branch holds commits that others have pushed.
    """
    given, token = claim.answer.branch_name, host.forges.token_for(claim.place.destination)
    if mask(given) != given or has_key(host, given):
        raise EvidenceError("The branch's name holds what looks like a key: choose another one.")
    there = None if claim.call.workspace.lane else remote_branches(claim.place, token)
    earlier = _earlier_branch(host, claim, there) if there is not None else None
    if earlier is not None:
        claim.fence.check()
        create_branch(claim.place, earlier.name)
        return Proof(earlier.name, warnings=(*_unusual(claim.call, earlier.name), *earlier.warnings(given)))
    names = _names(host, claim)
    name = free_name(claim.place, names, began_at=claim.call.workspace.began_at, token=token, there=there)
    claim.fence.check()
    create_branch(claim.place, name)
    return Proof(name, warnings=_unusual(claim.call, name))


def _names(host: Host, claim: Claim[GenerateBranchAnswer]) -> tuple[str, ...]:
    """Return the names that the branch may have; they have no prefix if the settings give no prefix."""
    given, workspace, wished = (
        claim.answer.branch_name,
        claim.call.workspace,
        claim.repository_settings.branch_prefix,
    )
    prefix = host.settings.branch_prefix if wished is None else wished
    if not prefix:
        return (prove_bare(given, bare_branches(given), partial(usable_name, claim.place)),)
    number, issue_class = workspace.issue_number, claim.call.progress.issue_class
    first = FirstPart(prefix, issue_class, number, workspace.work_order_id)
    return prove_bare(given, bare_branches(given), lambda name: first.names_for(_well_formed(name)))


def _well_formed(name: str) -> str:
    if refusal := form_refusal(name):
        raise EvidenceError(refusal)
    return name


@dataclass(frozen=True, slots=True)
class _EarlierBranch:
    name: str
    pull_request: str = ""

    def warnings(self, name: str) -> tuple[str, ...]:
        of = f" with {self.pull_request}" if self.pull_request else ""
        return () if name == self.name else (f"{self.name}{of} already belongs to this work order: it is kept",)


def _earlier_branch(host: Host, claim: Claim[GenerateBranchAnswer], there: RemoteRefs) -> _EarlierBranch | None:
    """Return the branch that the work order has on the forge already; `None` for no branch."""
    order_id, found = claim.call.workspace.work_order_id, None
    candidates = branches_of(claim.place, order_id, claim.call.workspace.issue_number, there=there)
    if not candidates:
        return None
    _, forge = host.forges.of(claim.call.workspace.repository)
    for name, sha in candidates.items():
        ours = [each for each in forge.pull_requests_of(name, claim.call.workspace.fork) if each.is_of(order_id)]
        is_own = sha is not None and is_own_push(claim.place, name, sha)
        pull_request = next((each for each in ours if each.state == "open"), None)
        if ours and pull_request is None:
            raise ended_one(ours[0])
        if pull_request is not None and not is_own and not _was_pushed_before(host, claim, name, sha):
            raise GitError(
                f"{pull_request.url} of this work order is at {sha}, which the work order did not push.",
                remedy="Merge or close it, and start another work order for the rest.",
            )
        if (is_own or pull_request is not None) and (found is None or pull_request is not None):
            found = _EarlierBranch(name, pull_request.url if pull_request else "")
    return found


def _was_pushed_before(host: Host, claim: Claim[GenerateBranchAnswer], name: str, sha: str | None) -> bool:
    """Return whether the work order itself pushed `sha`, between the backup and the restore of its host.

    If a person approves plans, this returns `False`: the push may belong to another plan.
    """
    call = claim.call
    if sha is None or call.approve_plan or not was_restored(host.runs, call.workspace.place_id):
        return False
    _, forge = host.forges.of(call.workspace.repository)
    workspace = call.workspace
    there = forge.pull_requests_of(name, workspace.fork)
    return own_pull_request(forge, there, workspace.work_order_id, sha) is not None


def _unusual(call: StepCall, name: str) -> tuple[str, ...]:
    """Return a warning if a branch name has neither the issue's number nor the work order's id."""
    order_id, number = call.workspace.work_order_id, call.workspace.issue_number
    if order_id in name or (number and re.search(rf"(?<!\d){re.escape(number)}(?!\d)", name)):
        return ()
    return (f"the branch's name does not hold the work order's id, {order_id}",)
