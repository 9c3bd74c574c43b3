"""Prove a round on a pull request: push the commit, and then answer on the forge."""

from functools import partial
from typing import Final

from activities.host.claims import Claim, Proof, RefusedError
from activities.host.host import Host
from activities.host.remote_checkpoints import expect_hold
from activities.outgoing.clean_texts import clean_commits, message_of, outgoing_for, warn_of_masked
from activities.outgoing.findings import changes_of_protected, notice_of
from activities.outgoing.leaving_content import Leaving, is_read, refuse_unread
from activities.outgoing.submodules import warn_of_edits_inside
from activities.steps.create_commit import assistance, run_checks, see_fit_to_leave
from septet.contracts.answers import ReworkAnswer
from septet.contracts.rework import Rework
from septet.errors import EvidenceError, ForgeError, ForgeUnavailableError, GitError, NotFoundError
from septet.forges.events.feedback import mark_answer
from septet.forges.forge import Conversation, FollowedForge
from septet.forges.values import NewPullRequest, pull_request_number
from septet.git.commits.commit import commit_all, with_trailer
from septet.git.commits.new_base import refuse_erased_base
from septet.git.commits.push import push, remote_branch
from septet.git.commits.rework_tree import fetch_tips, is_clean, unresolved
from septet.git.evidence.added_lines import committed_patches
from septet.git.evidence.evidence import keeps
from septet.git.evidence.pushable_objects import refuse_large_files
from septet.git.evidence.worker_keys import refuse_keys_in_commits, refuse_keys_in_files
from septet.outgoing.text import Outgoing

_SHOWN: Final = 2000


def prove_rework(host: Host, claim: Claim[ReworkAnswer]) -> Proof:
    """Run the checks, commit, push, and answer on the forge; the push never replaces commits of other people.

    Raises:
        RefusedError: The agent reports that the work could not be done.
        EvidenceError: The agent's report is wrong, a check failed, or the branch has moved.
        FindingsError: The work holds a text that looks like a key, or changes a protected path.
        ForgeUnavailableError: The forge did not answer; a retry writes only the missing answers.
    """
    rework, answer = _rework_of(claim), claim.answer
    if not answer.success:
        raise RefusedError(f"The agent says that it could not be done: {answer.summary}")
    _expect_tree(claim, rework)
    inside = warn_of_edits_inside(claim, refuses=True)
    # Work that a reader has read passed the checks before.
    if not (is_read(claim) and is_clean(claim.place)):
        run_checks(host, claim)
    sha = _commit(host, claim, rework)
    if sha != rework.head:
        _push(host, claim, rework, sha)
    warnings = _answer(host, claim, rework, sha)
    return Proof(answer.summary, commit_sha=sha, warnings=(*inside, *warnings))


def _rework_of(claim: Claim[ReworkAnswer]) -> Rework:
    if claim.call.rework is None:
        message = "the call names no round"
        raise RuntimeError(message)
    return claim.call.rework


def _expect_tree(claim: Claim[ReworkAnswer], rework: Rework) -> None:
    head, branch = claim.evidence.head, claim.call.progress.branch_name
    if head.branch != branch:
        raise EvidenceError(f"HEAD is on {head.branch or 'no branch'}: go back to {branch}.")
    if not rework.merges and not keeps(claim.place, rework.head):
        raise EvidenceError(f"The branch no longer holds {rework.head}, where it is on the forge.")
    if paths := unresolved(claim.place, rework.conflicts):
        count = f"{len(paths)} of {len(rework.conflicts)} files"  # a file's name may hold text for the agent
        raise EvidenceError(f"The conflict is not resolved: {count} of `conflict` still hold its markers.")


def _commit(host: Host, claim: Claim[ReworkAnswer], rework: Rework) -> str:
    since = rework.merges or rework.head
    refuse_large_files(claim.place, claim.evidence.files_changed)
    refuse_keys_in_files(claim.place, claim.evidence.files_changed)
    refuse_keys_in_commits(committed_patches(claim.place, since, claim.evidence.head.sha))
    claim.fence.check()
    clean_commits(host, claim, assistance(host, claim), rework.head, rework.merges)
    return commit_all(
        claim.place,
        with_trailer(message_of(host, claim)(claim.answer.commit_message), assistance(host, claim)),
        sign=host.settings.sign_commits,
        examine=partial(see_fit_to_leave, host, claim),
        merges=rework.merges,
    )


def _push(host: Host, claim: Claim[ReworkAnswer], rework: Rework, sha: str) -> None:
    """Push the round's commit, only if the branch is still at the commit from which the round began."""
    branch = claim.call.progress.branch_name or ""
    token = host.forges.token_for(claim.call.workspace.repository)
    expect_hold(host, claim.place)
    tips = fetch_tips(claim.place, branch, token)
    if tips is not None and tips.head == sha:
        return
    if tips is not None:
        refuse_erased_base(claim.place, sha, tips.base)
    if not keeps(claim.place, rework.head):
        raise EvidenceError(f"The branch no longer holds {rework.head}, where it is on the forge.")
    see_fit_to_leave(host, claim, None, sha, sha)  # the message of this round's commit among the rest
    outgoing, replies = outgoing_for(host, claim), enumerate(claim.answer.replies, 1)
    texts = {f"(reply {number})": outgoing.markdown(each.reply[:_SHOWN]) for number, each in replies}
    texts["(comment)"] = outgoing.markdown(claim.answer.summary[:_SHOWN])
    since = tuple(filter(None, dict.fromkeys((claim.began_at, rework.head, rework.merges))))
    refuse_unread(host, claim, Leaving(branch=branch, head=sha, since=since, texts=texts))
    claim.fence.check()
    try:
        push(claim.place, branch, sha, expected_tip=rework.head, token=token)
    except GitError as error:
        if error.retryable or remote_branch(claim.place, branch, token=token) == rework.head:
            raise
        raise EvidenceError(
            "Others have pushed new commits to the branch: the work is merged with them first."
        ) from error


def _answer(host: Host, claim: Claim[ReworkAnswer], rework: Rework, sha: str) -> tuple[str, ...]:
    """Answer each thread, and add one comment with the marks of all answered events; return warnings.

    Idempotent: each answer is found by its mark. A refusal of the forge is a warning: the work was pushed.
    """
    _, forge = host.forges.of(claim.call.workspace.repository)
    if not isinstance(forge, FollowedForge):
        return ()
    conversation, marker = forge.conversation(pull_request_number(rework.url)), _marker(claim, rework)
    masks: list[str] = []
    outgoing = outgoing_for(host, claim, masks)
    warnings = _reply(conversation, claim, rework, marker, outgoing)
    claim.fence.check()
    try:
        if notice := notice_of(changes_of_protected(host, claim, sha)):
            forge.add_to_pull_request(pull_request_number(rework.url), _bearer_of(claim, notice))
        conversation.put_comment(marker, _text(claim, rework, sha, outgoing))
    except ForgeUnavailableError:
        raise
    except (ForgeError, NotFoundError) as error:
        warnings.append(f"the comment about this round on {rework.url} was not written: {error}")
    return (*warnings, *warn_of_masked(masks))


def _bearer_of(claim: Claim[ReworkAnswer], notice: str) -> NewPullRequest:
    """Return the round's pull request as a value without a body; `notice` is for the start of its text."""
    workspace = claim.call.workspace
    return NewPullRequest(
        head=claim.call.progress.branch_name or "",
        base=workspace.base_branch,
        title=workspace.issue_title,
        body="",
        marker=workspace.work_order_id,
        notice=notice,
    )


def _reply(
    conversation: Conversation, claim: Claim[ReworkAnswer], rework: Rework, marker: str, outgoing: Outgoing
) -> list[str]:
    wanted = {event.id for event in rework.events}
    replies, warnings = {each.thread: each.reply for each in claim.answer.replies}, []
    for thread in conversation.threads():
        asked = any(f"thread:{thread.id}:{each.id}" in wanted for each in thread.comments)
        if not asked:
            continue
        claim.fence.check()
        text = outgoing.markdown(replies.get(thread.id, claim.answer.summary)[:_SHOWN])
        try:
            conversation.reply(thread, f"{marker} {thread.id}", text)
        except ForgeUnavailableError:
            raise
        except (ForgeError, NotFoundError) as error:
            warnings.append(f"a thread on {thread.path} was not answered: {error}")
    return warnings


def _marker(claim: Claim[ReworkAnswer], rework: Rework) -> str:
    return f"{claim.call.workspace.work_order_id} {claim.fence.key.run_id[:8]} round {rework.round}"


def _text(claim: Claim[ReworkAnswer], rework: Rework, sha: str, outgoing: Outgoing) -> str:
    events = "\n".join(f"- {_plain_title(event.title)}" for event in rework.events)
    what = f"in {sha[:12]}" if sha != rework.head else "without a change"
    marks = "\n".join(mark_answer(event.id) for event in rework.events)
    summary = outgoing.markdown(claim.answer.summary[:_SHOWN])
    return f"Septet's agent answered {what}:\n\n{events}\n\n{summary}\n\n{marks}"


def _plain_title(title: str) -> str:
    return title.replace("`", "'").replace("<", "(").replace("@", "@\u200b")
