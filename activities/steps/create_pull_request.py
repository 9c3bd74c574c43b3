"""Prove step 7: push the branch, and check on the forge that the pull request shows the pushed commit."""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Final

from activities.host.claims import Claim, EarlierStepError, Proof
from activities.host.host import Host
from activities.host.remote_checkpoints import expect_hold
from activities.outgoing.clean_texts import outgoing_for, warn_of_masked
from activities.outgoing.findings import (
    changes_of_protected,
    notice_of,
    on_protected,
    refuse_findings,
    refuse_paths,
)
from activities.outgoing.leaving_content import Leaving, refuse_unread
from activities.outgoing.plan import plan_paragraph
from activities.outgoing.submodules import refuse_lost_submodules, warn_of_edits_inside
from septet.contracts.answers import CreatePullRequestAnswer, PullRequestText
from septet.contracts.names import Step
from septet.contracts.workspace import Workspace
from septet.errors import (
    EvidenceError,
    ForgeError,
    ForgeLagsError,
    ForgeUnavailableError,
    NotFoundError,
    SeptetError,
)
from septet.forges.forge import Forge
from septet.forges.opening import without_links_to
from septet.forges.values import NewPullRequest, PullRequest, ended_one
from septet.git.commits.new_base import BranchWork, MovedWork, UnfitWorkError, is_behind, lay_on_base, work_on_base
from septet.git.commits.push import push, remote_branch, remote_tips
from septet.git.commits.rework_tree import go_to
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import is_in_commit
from septet.git.evidence.protected_changes import ProtectedChange
from septet.outgoing.text import Outgoing
from septet.system.text import name_some

_REASON: Final = "the base was force-pushed"
_SHOWN: Final = 12
_TOGETHER: Final = (
    "{} The work lies over the base as it is now, in the working tree: bring both together in {}, where git's "
    "markers show the conflict, and leave all else as it is. What the base has no longer stays out, for it may be "
    "a leaked key. Then see that the plan is still fulfilled; leave branches and commits to Septet."
)


def prove_create_pull_request(host: Host, claim: Claim[CreatePullRequestAnswer]) -> Proof:
    """Push the commit, find or open the branch's only pull request, and check that it shows the commit.

    Raises:
        FindingsError: The push holds a finding that waits for a person's decision.
        UnreadError: The push waits for a reader.
        EvidenceError: The work order has no commit, or the pull request is at another commit.
        EarlierStepError: The base was force-pushed, and an agent has to merge the work with the new base.
        ForgeError: The pull request has ended: another try of an agent cannot help.
        ForgeLagsError: The forge has accepted the push, but does not show the commit yet.
        LostBaseError: The base lost the commit from which the work began, and the work does not fit on the base.
        MovedError: The work order continues on another host: nothing is pushed from here.
    """
    call, progress = claim.call, claim.call.progress
    if progress.branch_name is None or progress.commit_sha is None:
        raise EvidenceError("There is no commit to open a pull request for.")
    expect_hold(host, claim.place)
    changes = refuse_findings(host, claim, None, progress.commit_sha, progress.commit_sha)
    lost = refuse_lost_submodules(host, claim, progress.commit_sha)
    warnings = (*lost, *warn_of_edits_inside(claim, refuses=False))
    _, forge = host.forges.of(call.workspace.repository)
    token = host.forges.token_for(claim.place.destination)
    base_tip, there = remote_tips(claim.place, progress.branch_name, host.forges.token_for)
    work = _work_on_base(
        host, claim, BranchWork(progress.branch_name, progress.commit_sha, claim.began_at), base_tip
    )
    if work.sha != work.commit:
        changes = changes_of_protected(host, claim, work.sha, work.base)
    if there != work.sha:
        refuse_paths(host, claim, changes, opens=_opens(forge, claim, changes))
    masks: list[str] = []
    new = _new(host, claim, changes, outgoing_for(host, claim, masks))
    texts = {"(title)": new.title, "(body)": new.body}
    since = tuple(dict.fromkeys((work.base, claim.began_at)))
    refuse_unread(host, claim, Leaving(branch=progress.branch_name, head=work.sha, since=since, texts=texts))
    claim.fence.check()
    sha = push(claim.place, progress.branch_name, work.sha, expected_tip=there, token=token)
    claim.fence.check()
    try:
        opened = _find_or_open(forge, claim, new, sha)
    except (ForgeError, NotFoundError) as error:
        _expect_base(claim.place, error, host.forges.token_for(claim.place.origin))
        raise
    if opened.head_sha not in {"", sha}:
        if remote_branch(claim.place, progress.branch_name, token=token) == sha:
            raise ForgeLagsError(
                f"{opened.url} does not show {sha} yet, which was pushed; it is at {opened.head_sha}."
            )
        raise EvidenceError(f"{opened.url} is at {opened.head_sha}, but the branch is at {sha}.")
    lacking = tuple(filter(None, [_lacking(call.workspace.lacks)]))
    moved = (_force_pushed(call.workspace, work),) if work.sha != work.commit else ()
    told = (*opened.warnings, *warnings, *moved, *lacking, *warn_of_masked(masks))
    return Proof(opened.url, commit_sha=sha, warnings=told)


def _work_on_base(
    host: Host, claim: Claim[CreatePullRequestAnswer], branch_work: BranchWork, base_tip: str | None
) -> MovedWork:
    """Return the work on the present base; write the moved work, or a conflict, into the worktree."""
    place, token = claim.place, host.forges.token_for(claim.place.origin)
    sign = host.settings.sign_commits
    try:
        work = work_on_base(place, branch_work, base_tip, sign=sign, token=token)
    except UnfitWorkError as error:
        claim.fence.check()
        secured_by = host.snapshots.checkpoint_once(place, _REASON)
        lay_on_base(place, error.work, host.snapshots.options(_REASON, claim.call.name, secured_by))
        message = _TOGETHER.format(error.message, name_some(error.work.conflicts, 20))
        raise EarlierStepError(message, Step.IMPLEMENT_PLAN) from error
    if is_behind(place, work):
        claim.fence.check()
        secured_by = host.snapshots.checkpoint_once(place, _REASON)
        go_to(place, branch_work.branch, work.sha, host.snapshots.options(_REASON, claim.call.name, secured_by))
    return work


def _force_pushed(workspace: Workspace, work: MovedWork) -> str:
    """Return a warning that the base was force-pushed and that the work was moved."""
    unseen = "" if work.was_checked else ", where no check has seen it"
    return (
        f"{workspace.base_branch} was force-pushed and no longer holds {workspace.base_sha[:_SHOWN]}: the work is "
        f"in one commit, {work.sha[:_SHOWN]}, on {work.base[:_SHOWN]}{unseen}."
    )


def _expect_base(place: Place, error: SeptetError, token: str | None) -> None:
    """Raise if the base branch no longer exists; call this after the forge has refused a pull request."""
    if isinstance(error, ForgeUnavailableError) and not isinstance(error, ForgeLagsError):
        return
    ref, shas = f"refs/heads/{place.base_branch}", None
    with suppress(SeptetError):  # the first error says more
        shas = Remote(place.origin, place.env, token).refs(place.mirror, ref).shas
    if shas is not None and ref not in shas:
        raise ForgeError(
            f"base: {place.origin} no longer has the branch {place.base_branch}: {error.message}",
            remedy="Push that branch to it again and run `septet retry`, or start another work order with --base.",
        ) from error


def _opens(forge: Forge, claim: Claim[CreatePullRequestAnswer], changes: tuple[ProtectedChange, ...]) -> bool:
    """Return false if protected `changes` go to an open pull request, otherwise true."""
    head, fork = claim.call.progress.branch_name or "", claim.call.workspace.fork
    return not changes or forge.find_pull_request(head, fork) is None


def _find_or_open(
    forge: Forge, claim: Claim[CreatePullRequestAnswer], new: NewPullRequest, sha: str
) -> PullRequest:
    """Return the branch's open pull request, or the work order's merged one; if there is neither, open one."""
    head, order_id = claim.call.progress.branch_name or "", claim.call.workspace.work_order_id
    fork = claim.call.workspace.fork
    if (earlier := forge.find_pull_request(head, fork)) is not None:
        if not claim.call.workspace.began_at and earlier.is_of(order_id):
            # `open_pull_request` finds the open pull request, and completes labels and people.
            earlier = forge.open_pull_request(new)
        return _add_to(forge, earlier, claim, new)
    ended = next((each for each in forge.pull_requests_of(head, fork) if each.is_of(order_id)), None)
    if ended is None or ended.state == "open":
        return forge.open_pull_request(new)
    if ended.state == "merged" and ended.head_sha in {"", sha}:
        return replace(ended, warnings=(f"{ended.url} is already merged.",))
    raise ended_one(ended)


def _add_to(
    forge: Forge, earlier: PullRequest, claim: Claim[CreatePullRequestAnswer], new: NewPullRequest
) -> PullRequest:
    """Return `earlier`; if `new` has a notice, or other work is continued, add `new` to the text of `earlier`."""
    if not claim.call.workspace.began_at and not new.notice:
        return earlier
    try:
        forge.add_to_pull_request(earlier.number, new)
    except ForgeUnavailableError:
        raise
    except (ForgeError, NotFoundError) as error:  # the pull request has the work all the same
        warning = f"this work order was not added to the text of {earlier.url}: {error}"
        return replace(earlier, warnings=(*earlier.warnings, warning))
    return earlier


def _new(
    host: Host, claim: Claim[CreatePullRequestAnswer], changes: tuple[ProtectedChange, ...], outgoing: Outgoing
) -> NewPullRequest:
    """Return the pull request to open, with the agent's text; if the agent wrote none, with the issue's title."""
    call, answer = claim.call, claim.answer
    text = answer if isinstance(answer, PullRequestText) else None
    wishes, body = claim.repository_settings.pull_request, outgoing.markdown(text.body) if text else ""
    closes = _closes(body, call.workspace) if wishes.closes_issue else ""
    plan, sha = call.progress.plan_path or "", call.progress.commit_sha or ""
    if plan and plan in body and not is_in_commit(claim.place, sha, plan):
        body = without_links_to(plan, body)
    paragraphs = (body, plan_paragraph(claim, outgoing), closes, _lacking(call.workspace.lacks))
    return NewPullRequest(
        head=call.progress.branch_name or "",
        base=call.workspace.base_branch,
        title=outgoing.line(text.title if text else call.workspace.issue_title),
        body="\n\n".join(filter(None, paragraphs)),
        notice=notice_of(changes),
        marker=call.workspace.work_order_id,
        draft=call.draft or wishes.draft or (bool(changes) and on_protected(host, claim) == "draft"),
        labels=(*call.labels, *wishes.labels),
        reviewers=tuple(wishes.reviewers),
        assignees=tuple(wishes.assignees),
        head_project=call.workspace.fork,
    )


def _closes(body: str, workspace: Workspace) -> str:
    """Return the line by which a merge closes the issue; empty without an issue, or if the body has the line.

    For an issue of Linear, the line has Linear's name of the issue, such as `ENG-7`.
    """
    if workspace.tracker is not None:
        verb, named = "Fixes", workspace.tracker.key
    else:
        verb, named = "Closes", f"#{workspace.issue_number}"
        if not workspace.issue_number.isdecimal():
            return ""
    said = re.search(rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +{re.escape(named)}\b", body, re.IGNORECASE)
    return f"{verb} {named}" if said is None else ""


def _lacking(branches: tuple[str, ...]) -> str:
    """Return a warning that names the branches to merge first; empty if there are none."""
    if not branches:
        return ""
    named = ", ".join(f"`{branch}`" for branch in branches)
    return (
        f"This also depends on {named}, whose work is not in this branch: merge that first, then "
        "test both together."
    )
