"""Push one commit to one branch of the origin, if that branch is at the expected commit.

A work order's pushes are recorded: after a return to an earlier step, it may replace the pushed commits.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from septet.errors import GitError, InvalidInputError, NotFoundError
from septet.git.engine.git_words import REMOTE_IS_FULL, failure_of, printable, remote_words
from septet.git.engine.place import Place, record_of
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import contains
from septet.git.evidence.pushable_objects import refuse_unfit_commits
from septet.git.worktree.dot_git import refuse_foreign, refuse_links
from septet.git.worktree.view import borrowed_from, view_folder
from septet.system.durable import write_durably

_FILE: Final = "pushed.json"
_OF: Final = ":"
"""What separates a work order's id from a branch's name in a key; neither contains a colon."""


def note_push(place: Place, branch: str, sha: str) -> None:
    """Record that `sha` is about to be pushed to `branch`."""
    pushes, key = _read(place), _key(place, branch)
    if sha not in pushes.get(key, []):
        pushes.setdefault(key, []).append(sha)
        write_durably(place.records / _FILE, json.dumps(pushes).encode())


def is_own_push(place: Place, branch: str, sha: str) -> bool:
    """Return whether this work order has recorded a push of `sha` to `branch`."""
    return sha in _read(place).get(_key(place, branch), [])


def pushed_branches(place: Place) -> tuple[str, ...]:
    """Return the branches to which this work order has pushed, the first push first."""
    keys = (key.rpartition(_OF) for key in _read(place))
    return tuple(branch for visitor, _, branch in keys if visitor == place.visitor)


def copy_pushes(lane: Place, place: Place) -> None:
    """Record in `place` the pushes of the work order that uses a lane now. Idempotent."""
    pushes = _read(lane)
    for branch in pushed_branches(lane):
        for sha in pushes[_key(lane, branch)]:
            note_push(place, branch, sha)


def _key(place: Place, branch: str) -> str:
    """Return the key of a branch in the record of pushes; in a lane, the key contains the work order's id."""
    return f"{place.visitor}{_OF}{branch}" if place.visitor else branch


def _read(place: Place) -> dict[str, list[str]]:
    try:
        pushes: dict[str, list[str]] = json.loads((place.records / _FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return pushes


_SOMEBODY_ELSE: Final = (
    "Someone else has pushed to the branch. Keep their commits elsewhere, delete the branch on the forge, "
    "then run `septet retry ID`."
)
_PROTECTED: Final = (
    "The branch is protected: let the worker's account push to {branch}, then run `septet retry ID`."
)
_SIGN_OFF: Final = (
    "Restart the worker with SEPTET_SIGN_OFF=true, then `septet retry ID --from create_commit` makes the commit "
    "again, with the worker's Signed-off-by. For later work orders set `sign_off = true` under `[commit]` in "
    ".septet/septet.toml."
)
_SIGN: Final = (
    "Restart the worker with SEPTET_SIGN_COMMITS=true and a signing key in its user's git settings; then "
    "`septet retry ID --from create_commit` makes the commit again."
)
_LEAVE_OUT: Final = (
    "`septet retry ID --from implement_plan --feedback 'Leave out what the forge refused'` does the work again, "
    "without that."
)
_RULE: Final = (
    "A rule of the remote forbids the push: see what it said. Once the rule allows it, run `septet retry ID`; "
    "add `--from create_commit` for another commit, or `--from implement_plan` for other work."
)
_REMEDIES: Final = (
    ("stale info", _SOMEBODY_ELSE),
    ("non-fast-forward", _SOMEBODY_ELSE),
    ("signed-off-by", _SIGN_OFF),
    ("dco sign", _SIGN_OFF),
    ("verified signature", _SIGN),
    ("must be signed", _SIGN),
    ("contain secrets", _LEAVE_OUT),
    ("file size limit", _LEAVE_OUT),
    ("large files", _LEAVE_OUT),
    ("larger than", _LEAVE_OUT),
    ("workflow", "The worker's token needs the right to write workflows."),
    ("gh013", _RULE),
    ("protected", _PROTECTED),
    ("gh006", _PROTECTED),
    ("hook declined", _RULE),
    ("checked out", "The branch is checked out there: check out another one, then run `septet retry ID`."),
    ("unpack", "Give the worker's user the right to write the origin's objects."),
)


def protected_branches(place: Place) -> frozenset[str]:
    """Return the branches to which Septet never pushes: the work order's base and the origin's default branch."""
    return frozenset({place.base_branch, record_of(place).default_branch} - {""})


def push(place: Place, branch: str, sha: str, *, expected_tip: str | None = None, token: str | None = None) -> str:
    """Push commit `sha` to the origin's `branch`, and return the branch's new commit.

    Idempotent: a branch that is already at `sha` stays. git runs in Septet's view of the worktree with the
    origin's URL, so it reads no setting that an agent can write.

    Args:
        expected_tip: The present commit of the origin's branch; `None` if the branch must not exist. If this work
            order has not pushed this commit, `sha` must contain this commit.

    Raises:
        InvalidInputError: The branch is the base or the default branch.
        GitUnavailableError: The origin was not reached, or has no room.
        NotFoundError: The origin has no such repository.
        EvidenceError: A commit holds a file that is too large, or an object that git refuses.
        GitError: The origin refused: the branch is at another commit, protected, or the account may not write.
    """
    if branch in protected_branches(place):
        raise InvalidInputError(f"{branch} is where the work starts from, so Septet never pushes to it.")
    refuse_links(place.worktree / ".git")
    refuse_foreign(place.worktree / ".git", borrowed_from(place.mirror))
    replaces = expected_tip is not None and is_own_push(place, branch, expected_tip)
    if expected_tip is not None and not replaces and not contains(place, sha, expected_tip):
        message = f"{place.destination} has commits in {branch} that {sha[:12]} does not contain."
        raise GitError(message, remedy=_SOMEBODY_ELSE)
    refuse_unfit_commits(place, sha)
    note_push(place, branch, sha)
    ref = f"refs/heads/{branch}"
    answer = Remote(place.destination, place.env, token).push(view_folder(place), sha, ref, expected_tip or "")
    if answer.is_done:
        return sha
    # git itself repeats a push whose answer was lost, and then the origin answers that the branch exists.
    with suppress(GitError, NotFoundError):
        if remote_branch(place, branch, token=token) == sha:
            return sha
    if answer.rejection and re.search(REMOTE_IS_FULL, printable(answer.stderr), re.IGNORECASE) is None:
        raise _rejection(place.destination, branch, answer.rejection, remote_words(answer.stderr))
    raise failure_of("push", place.destination, answer.stderr)


def remote_branch(place: Place, branch: str, *, token: str | None = None) -> str | None:
    """Return the commit of the origin's `branch`; `None` if there is no such branch.

    Raises:
        GitUnavailableError: The origin was not reached.
        NotFoundError: The origin has no such repository.
        GitError: The origin refused.
    """
    ref = f"refs/heads/{branch}"
    return Remote(place.destination, place.env, token).refs(place.mirror, ref).shas.get(ref)


def remote_tips(
    place: Place, branch: str, token_for: Callable[[str], str | None]
) -> tuple[str | None, str | None]:
    """Return the commits of the base branch and of `branch`, each as the remote has it; `None` if it is missing.

    The origin has the base branch. If there is a fork, it has `branch`, and a second request is needed.
    `token_for` returns the key for a repository's address.

    Raises:
        GitUnavailableError: The origin was not reached.
        NotFoundError: The origin has no such repository.
        GitError: The origin refused.
    """
    base, ref = f"refs/heads/{place.base_branch}", f"refs/heads/{branch}"
    wanted = (base,) if place.fork else (base, ref)
    shas = Remote(place.origin, place.env, token_for(place.origin)).refs(place.mirror, *wanted).shas
    if place.fork:
        return shas.get(base), remote_branch(place, branch, token=token_for(place.fork))
    return shas.get(base), shas.get(ref)


def _rejection(origin: str, branch: str, line: str, stderr: str) -> GitError:
    everything = f"{line}\n{stderr}".replace(branch, "").lower()  # a branch name can hold these words too
    remedy = next((remedy for word, remedy in _REMEDIES if word in everything), _RULE)
    reason = line.rpartition("\t")[2] or line
    message = f"{origin} rejected the push to {branch}: {reason}\n{stderr}"
    return GitError(message, remedy=remedy.format(branch=branch))
