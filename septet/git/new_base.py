"""Work on a base that was written anew meanwhile: what was taken out of the base does not go out with the work."""

import json
from dataclasses import asdict, dataclass
from typing import Final

from septet.errors import GitError
from septet.git.commit import write_commit
from septet.git.dot_git import read_head
from septet.git.evidence import contains
from septet.git.mirror import refresh_mirror
from septet.git.place import Place
from septet.git.remote import Remote
from septet.git.rework_tree import is_clean, merge_commits
from septet.git.view import view_git
from septet.system.durable import write_durably

_FILE: Final = "moved_work.json"
_SHOWN: Final = 12
_SHOWN_PATHS: Final = 5
_REMEDY: Final = (
    "Where that commit may be published again, push it to {branch} and run `septet retry ID`. Where it may not, "
    "start another work order: it begins on {branch} as it is now. `septet rescue list` names the snapshots of "
    "this work, and `septet rescue restore SNAPSHOT --to DIR` gets it."
)


class LostBaseError(GitError):
    """The base branch no longer holds the commit that the work began from."""


@dataclass(frozen=True, slots=True)
class MovedWork:
    """A commit's work on another base."""

    commit: str
    """As it was made on the base that the work began from."""
    base: str
    sha: str
    """The commit that holds the same work on `base`."""


def work_on_base(  # noqa: PLR0913 -- which work, and how its commit is made
    place: Place, branch: str, commit: str, began_at: str, *, sign: bool = False, token: str | None = None
) -> MovedWork:
    """Return a work order's commit on the origin's base branch: another one where that was written anew.

    Where the base still holds what the work began from, or is gone, the commit stays as it is. Else what the work
    has changed is laid over the base as it is now, in one commit with the message of `commit`. The worktree stays
    as it is.

    Args:
        place: The work order's place.
        branch: Its branch.
        commit: The last commit of its work.
        began_at: The commit that it began from, which may be another work order's.
        sign: Sign with the worker's own git settings.
        token: The worker's key for an https origin.

    Raises:
        LostBaseError: The work does not fit on the base as it is now; the message says why.
        GitUnavailableError: The origin was not reached.
        GitError: It refused.
    """
    work = _recall(place, commit)
    name = f"refs/heads/{place.base_branch}"
    origin = Remote(place.origin, place.env, token)
    if name not in origin.refs(place.mirror, name).shas:
        return work
    tip = refresh_mirror(place.mirror, origin, place.base_branch).sha
    if contains(place, tip, work.base):
        return work
    here = read_head(place.worktree / ".git")
    if began_at != place.base_sha:
        raise _lost_base(place, work, "and the work continues that of another work order")
    if here.branch != branch or here.sha not in {commit, work.sha} or not is_clean(place):
        raise _lost_base(place, work, "and the worktree is not at the work's last commit")
    sha = _lay_over(place, work, tip, sign=sign)
    moved = MovedWork(commit, tip, sha)
    write_durably(place.records / _FILE, json.dumps(asdict(moved)).encode())
    return moved


def is_behind(place: Place, work: MovedWork) -> bool:
    """Say whether the worktree is where the work was before it was moved, and may be brought after it."""
    here = read_head(place.worktree / ".git").sha
    return work.sha != here == work.commit and is_clean(place)


def _recall(place: Place, commit: str) -> MovedWork:
    """Return where a commit's work was moved to before; where it began, where it was not."""
    try:
        moved = MovedWork(**json.loads((place.records / _FILE).read_bytes()))
    except FileNotFoundError:
        moved = None
    return moved if moved is not None and moved.commit == commit else MovedWork(commit, place.base_sha, commit)


def _lay_over(place: Place, work: MovedWork, tip: str, *, sign: bool) -> str:
    """Return a commit on `tip` that changes what the work has changed since its base.

    git merges from a common ancestor: here that is the base as it was, and not what the two bases have in common,
    or what was taken out of the base would count as the work's own.
    """
    git = view_git(place)
    before = write_commit(git, f"{work.base}^{{tree}}", (), "before")
    ours = write_commit(git, f"{tip}^{{tree}}", (before,), "ours")
    theirs = write_commit(git, f"{work.sha}^{{tree}}", (before,), "theirs")
    merged = merge_commits(place, ours, theirs)
    if merged.conflicts:
        named = ", ".join(merged.conflicts[:_SHOWN_PATHS])
        raise _lost_base(place, work, f"and the work does not fit on {tip[:_SHOWN]}, where it is now: {named}")
    message = git.run("log", "-1", "--format=%B", work.sha).decode(errors="replace")
    return write_commit(git, merged.tree, (tip,), message, sign=sign)


def _lost_base(place: Place, work: MovedWork, why: str) -> LostBaseError:
    branch = place.base_branch
    message = f"{branch} of {place.origin} was force-pushed and no longer holds {work.base[:_SHOWN]}, {why}."
    return LostBaseError(message, remedy=_REMEDY.format(branch=branch))
