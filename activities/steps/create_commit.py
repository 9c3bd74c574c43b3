"""Prove step 6: run the repository's own checks, and commit the work if the agent did not."""

import os
from contextlib import suppress
from functools import partial
from typing import Final

from activities.host.claims import AnyClaim, Claim, Proof
from activities.host.host import Host
from activities.host.repository_commands import run_command
from activities.outgoing.clean_texts import clean_commits, message_of
from activities.outgoing.findings import refuse_findings
from activities.outgoing.plan import refuse_plan
from activities.outgoing.submodules import refuse_lost_submodules
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.sandbox.guest_run import GuestCommand
from septet.base_checks import result_of
from septet.contracts.answers import CreateCommitAnswer
from septet.contracts.names import Step
from septet.errors import EvidenceError
from septet.git.commits.commit import commit_all, with_trailer
from septet.git.engine.engine import Git
from septet.git.evidence.added_lines import committed_patches
from septet.git.evidence.evidence import new_files
from septet.git.evidence.pushable_objects import refuse_large_files, refuse_unfit_commits, whole_lfs_files
from septet.git.evidence.worker_keys import refuse_keys_in_commits, refuse_keys_in_files
from septet.system.durable import write_durably

_BEFORE: Final = (
    "\nThis check failed on the base commit too, before any work. If the issue is about something else, mend the "
    "base branch first, and start a new work order."
)


def prove_create_commit(host: Host, claim: Claim[CreateCommitAnswer]) -> Proof:
    """Run the repository's checks, commit uncommitted work, and check that the work has a commit.

    Raises:
        FindingsError: The work holds a text that looks like a key, or changes a protected path.
        EvidenceError: A check failed, or the work has no change to commit.
    """
    run_checks(host, claim)
    refuse_large_files(claim.place, claim.evidence.files_changed)
    refuse_keys_in_files(claim.place, claim.evidence.files_changed)
    refuse_keys_in_commits(committed_patches(claim.place, claim.began_at, claim.evidence.head.sha))
    claim.fence.check()
    clean_commits(host, claim, assistance(host, claim))
    message = message_of(host, claim)(claim.answer.commit_message)
    sha = commit_all(
        claim.place,
        with_trailer(message, assistance(host, claim)),
        sign=host.settings.sign_commits,
        examine=partial(see_fit_to_leave, host, claim),
    )
    if sha == claim.began_at:
        raise EvidenceError("HEAD is where the work began: there is nothing to commit.")
    told = whole_lfs_files(claim.place, [change.path for change in claim.evidence.files_changed])
    passed = len(claim.repository_settings.checks)
    return Proof(message, commit_sha=sha, checks_passed=passed, warnings=(told,) if told else ())


def see_fit_to_leave(host: Host, claim: AnyClaim, staged: Git | None, head: str, tree: str) -> None:
    """Raise if the commits up to `head` or the staged changes must not leave this host.

    Args:
        staged: The index with the changes staged on `head`; `None` if `head` holds the whole work.
        tree: The tree of the work, or the commit `head` if it holds the whole work.

    Raises:
        FindingsError: The work holds a finding that waits for a person's decision.
        EvidenceError: The work holds a file that is too large, content that git refuses, a plan that has to stay
            out of commits, or a submodule commit that its origin lacks.
        GitError: git could not read the work.
    """
    refuse_unfit_commits(claim.place, head)
    refuse_plan(claim, tree)
    refuse_findings(host, claim, staged, head, tree)
    refuse_lost_submodules(host, claim, tree)


def assistance(host: Host, claim: AnyClaim) -> str:
    """Return the commit's line that names the agent and the model; empty if the settings want no line."""
    if not claim.repository_settings.assisted_by:
        return ""
    agent, asked = _implementer(host, claim)
    return f"Assisted-by: {agent}{f':{asked}' if asked else ''}"


def _implementer(host: Host, claim: AnyClaim) -> tuple[str, str | None]:
    """Return the agent that last implemented the plan, and the requested model.

    The agent may be the fallback agent, which takes over at a usage limit.
    """
    call, workspace = claim.call, claim.call.workspace
    records = [run.record for run in host.runs.lately(workspace.place_id) if run.record is not None]
    step, order_id = Step.IMPLEMENT_PLAN, workspace.work_order_id
    asked = [(each.agent, each.model) for each in records if (each.step, each.key.workflow_id) == (step, order_id)]
    if asked:
        return asked[-1]
    settings, by_worker = claim.repository_settings, host.settings.model
    return workspace.agent, settings.model_for(step, call.model, by_worker=by_worker)


def run_checks(host: Host, claim: AnyClaim) -> None:
    """Run the repository's checks in order, in the sandbox; each check is an argv, without a shell.

    New files that a check leaves are deleted unless git ignores them.

    Raises:
        EvidenceError: A check failed; the message holds the output of the first failed check.
        SnapshotError: The worktree is now larger than its size limit.
        GitError: git could not list the new files.
    """
    settings, env = claim.repository_settings, select_variables(host.agents.env, FOR_EVERY_AGENT)
    if not settings.checks:
        return
    guests = claim.guests()
    file = guests.folder.with_name("files-before-checks")
    if not file.exists():
        write_durably(file, b"\0".join(new_files(claim.place)))
    known = frozenset(file.read_bytes().split(b"\0"))
    try:
        for argv in settings.checks:
            command = GuestCommand(argv, env, claim.place.worktree, settings.check_seconds)
            if failure := run_command(guests, command, "Check", f"{settings.check_seconds:.0f} s"):
                base = result_of(host.state, claim.place)
                before = base is not None and base.fails(" ".join(argv))
                raise EvidenceError(f"{failure}{_BEFORE if before else ''}")
    finally:
        for path in new_files(claim.place) - known:
            with suppress(OSError):  # a file stays in a folder that a check has closed
                (claim.place.worktree / os.fsdecode(path)).unlink(missing_ok=True)
    host.snapshots.scan(claim.place)  # raises if agent and checks have left more than the limit
