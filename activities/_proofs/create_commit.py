"""Step 6 is proved by the repository's own checks and by a commit, which is made where the agent made none."""

from functools import partial
from typing import Final

from activities._claims import AnyClaim, Claim, Proof
from activities._found_keys import refuse_found_keys
from activities.host import Host
from septet.agents.clis.adapter import FOR_EVERY_AGENT, select_variables
from septet.agents.turns.guest_run import GuestCommand
from septet.contracts.answers import CreateCommitAnswer
from septet.contracts.names import Step
from septet.errors import EvidenceError
from septet.git.commit import commit_all, with_trailer
from septet.git.keys_in_work import refuse_keys_in_commits, refuse_keys_in_files
from septet.git.worktree_status import WorktreeStatus
from septet.system.masking import mask

_OUTPUT_SHOWN: Final = 1200
"""Characters of a failing check's output that go back to the agent: its end says most."""


def prove_create_commit(host: Host, claim: Claim[CreateCommitAnswer]) -> Proof:
    """Run the repository's own checks, commit what the agent has not, and see that HEAD moved.

    Raises:
        KeysFoundError: The work holds what looks like a key.
        EvidenceError: A check failed, the work holds a key of the worker, or there is nothing to commit.
    """
    run_checks(host, claim)
    refuse_keys_in_files(claim.place, claim.evidence.files_changed)
    refuse_keys_in_commits(claim.place, claim.began_at, claim.evidence.head.sha)
    message = claim.answer.commit_message
    claim.fence.check()
    sha = commit_all(
        claim.place,
        with_trailer(message, assistance(host, claim)),
        sign=host.settings.sign_commits,
        scan=claim.scan,
        examine=partial(refuse_found_keys, host, claim),
    )
    if sha == claim.began_at:
        raise EvidenceError("HEAD is where the work began: there is nothing to commit.")
    return Proof(message, commit_sha=sha, status=WorktreeStatus(sha, ()))


def assistance(host: Host, claim: AnyClaim) -> str:
    """Return the line that names the agent, and its model where one was asked for; empty where none is wanted."""
    settings, call = claim.repository_settings, claim.call
    if not settings.assisted_by:
        return ""
    asked = settings.model_for(Step.IMPLEMENT_PLAN, call.model or host.settings.model, call.settings)
    return f"Assisted-by: {call.workspace.agent}{f':{asked}' if asked else ''}"


def run_checks(host: Host, claim: AnyClaim) -> None:
    """Run the checks in their order, confined as agents are, in their environment: argv, never a shell.

    Raises:
        EvidenceError: One failed; the message holds what the first that did printed.
        SnapshotError: There is more in the worktree now than its limit of size lets be read.
    """
    settings, env = claim.repository_settings, select_variables(host.agents.env, FOR_EVERY_AGENT)
    for argv in settings.checks:
        shown = " ".join(argv)
        try:
            end = claim.guests().run(GuestCommand(argv, env, claim.place.worktree, settings.check_seconds))
        except FileNotFoundError as error:
            message = f"Check `{shown}` could not be started: {error.strerror}."
            raise EvidenceError(message) from error
        if end.record.cause == "not_started":
            raise EvidenceError(f"Check `{shown}` could not be started: {end.record.why}.")
        if end.record.cause == "wall_limit":
            raise EvidenceError(f"Check `{shown}` took longer than {settings.check_seconds:.0f} s.")
        if end.record.cause.endswith("_limit"):
            raise EvidenceError(f"Check `{shown}` used too much: {end.record.why}.")
        if end.code != 0 or end.record.cause != "exited":
            output = mask(end.output).strip()[-_OUTPUT_SHOWN:]
            raise EvidenceError(f"Check `{shown}` failed (exit code {end.code}):\n{output}")
    if settings.checks:
        host.scan(claim.place)  # what agent and checks have left is not too large to be read
