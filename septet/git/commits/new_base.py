"""Move work to a rewritten base branch, so that content that was removed from the base is not published again."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Final

from septet.errors import GitError
from septet.git.commits.commit import write_commit
from septet.git.commits.rework_tree import MergedTree, is_clean, lay_merge, merge_commits, unresolved
from septet.git.engine.engine import Git
from septet.git.engine.objects import read_files_at
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import contains, keeps
from septet.git.vault.facts import SnapshotOptions
from septet.git.workspace.mirror import refresh_mirror
from septet.git.worktree.dot_git import read_head
from septet.git.worktree.view import shown_path, view_git
from septet.system.durable import write_durably

_FILE: Final = "moved_work.json"
_BASES: Final = "bases"
"""The file with the base branch's last commits at the start and the end of each round; work may contain them."""
_MARKER: Final = b"<<<<<<< "
_SHOWN: Final = 12
_REMEDY: Final = (
    "Where that commit may be published again, push it to {branch} and run `septet retry ID`. Where it may not, "
    "start another work order: it begins on {branch} as it is now. `septet rescue list` names the snapshots of "
    "this work, and `septet rescue restore SNAPSHOT --to DIR` gets it."
)


class LostBaseError(GitError):
    """The base branch no longer holds the commit that the work began from."""


@dataclass(frozen=True, slots=True)
class BranchWork:
    """The commits of a work order on its branch; `commit` is the last one."""

    branch: str
    commit: str
    began_at: str
    """The commit on which the work began; it may be another work order's."""


@dataclass(frozen=True, slots=True)
class MovedWork:
    """A work order's commit, and a commit with the same work on another base."""

    commit: str
    """The work order's last commit, on its first base."""
    base: str
    sha: str
    """The commit with the same work on the new base."""
    conflicts: tuple[str, ...] = ()
    """The files that work and base both changed; in `sha` they have git's conflict markers."""
    was_checked: bool = False
    """Whether an agent has resolved the conflicts, so that checks ran on the work on its new base."""


class UnfitWorkError(LostBaseError):
    """The work and the base as it is now have changed the same files, which an agent may bring together."""

    def __init__(self, message: str, remedy: str, work: MovedWork) -> None:
        """Create the error; `work.conflicts` has the files to bring together, `message` why nothing is pushed."""
        self.work = work
        super().__init__(message, remedy=remedy)


def work_on_base(
    place: Place, work: BranchWork, base_tip: str | None, *, sign: bool = False, token: str | None = None
) -> MovedWork:
    """Return a work order's work on the origin's present base branch.

    The work's commit is kept if the base still has the commit on which the work began, or if the base was deleted.
    If the base was rewritten, the work becomes one commit on the present base. The worktree is not changed.

    `base_tip` is the base branch's commit on the origin; `None` if the branch was deleted.

    Raises:
        UnfitWorkError: Work and base changed the same files; `lay_on_base` writes the conflicts to the worktree.
        LostBaseError: The work does not fit on the present base; the message has the reason.
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    before, unfit = _recall(place, work.commit, sign=sign)
    if base_tip in {None, before.base}:
        return before
    tip = refresh_mirror(place.mirror, Remote(place.origin, place.env, token), place.base_branch).sha
    if contains(place, tip, before.base):
        return before
    if unfit:
        raise _lost_base(place, before, f"and {unfit}")
    here = read_head(place.worktree / ".git")
    if work.began_at != place.base_sha:
        raise _lost_base(place, before, "and the work continues that of another work order")
    is_at_work = here.branch == work.branch and here.sha in {work.commit, before.sha}
    if not is_at_work or not _is_clean(place, work.commit):
        raise _lost_base(place, before, "and the worktree is not at the work's last commit")
    moved = _lay_over(place, before, tip, sign=sign)
    if moved.conflicts:
        named = ", ".join(moved.conflicts[:5])
        why = f"and the work does not fit on {tip[:_SHOWN]}, where it is now: {named}"
        error = _lost_base(place, before, why)
        may_be_asked = len(read_files_at(view_git(place), tip, moved.conflicts)) == len(moved.conflicts)
        raise UnfitWorkError(error.message, error.remedy, moved) if may_be_asked else error
    _remember(place, moved)
    return moved


def lay_on_base(place: Place, work: MovedWork, options: SnapshotOptions) -> None:
    """Write work that conflicts with its new base into the worktree, with git's conflict markers; HEAD stays.

    A worktree with changes, for example after an earlier call, is left as it is.
    """
    if is_clean(place):
        _remember(place, work)
        lay_merge(place, MergedTree(f"{work.sha}^{{tree}}", work.conflicts), options)


def unfit_files(place: Place) -> tuple[str, ...]:
    """Return the files of the worktree that still have conflict markers from `lay_on_base`."""
    work = _last_moved(place)
    return unresolved(place, work.conflicts) if work is not None and keeps(place, work.commit) else ()


def is_behind(place: Place, work: MovedWork) -> bool:
    """Return whether the worktree is clean and still at the work's commit on the old base."""
    here = read_head(place.worktree / ".git").sha
    return work.sha != here == work.commit and is_clean(place)


def refuse_erased_base(place: Place, head: str, tip: str) -> None:
    """Record the base's `tip`; refuse `head` if it contains a commit that a force-push removed from the base.

    Raises:
        LostBaseError: `head` contains such a commit.
    """
    moved, noted = _last_moved(place), place.records / _BASES
    bases = noted.read_text(encoding="ascii").split() if noted.exists() else []
    for base in (place.base_sha, *([moved.base] if moved is not None else []), *bases):
        if contains(place, head, base) and not contains(place, tip, base):
            branch, short = place.base_branch, base[:_SHOWN]
            raise LostBaseError(
                f"{branch} of {place.origin} was force-pushed and no longer holds {short}, which is in the branch "
                f"of the pull request: nothing more is pushed there. Bring the branch onto {branch} in a clone of "
                f"yours, without that commit (`git rebase --onto origin/{branch} {short}`), and force-push it."
            )
    if tip not in bases:
        write_durably(noted, "\n".join((*bases, tip)[-50:]).encode())


def _is_clean(place: Place, commit: str) -> bool:
    """Return whether the worktree is clean, or has only the conflicts of `commit` with a new base."""
    work = _last_moved(place)
    return is_clean(place) or (work is not None and work.commit == commit and bool(work.conflicts))


def _remember(place: Place, work: MovedWork) -> None:
    write_durably(place.records / _FILE, json.dumps(asdict(work)).encode())


def _last_moved(place: Place) -> MovedWork | None:
    """Return the work that was last moved to a new base in this workspace; `None` if none was."""
    try:
        facts = json.loads((place.records / _FILE).read_bytes())
    except FileNotFoundError:
        return None
    return MovedWork(**facts | {"conflicts": tuple(facts["conflicts"])})


def _recall(place: Place, commit: str, *, sign: bool) -> tuple[MovedWork, str]:
    """Return a commit's work, and why the commit is refused; the reason is empty for an accepted commit.

    If the work was moved, or if an agent resolved the conflicts in the commit, the work is on its new base.
    """
    moved, began = _last_moved(place), MovedWork(commit, place.base_sha, commit)
    if moved is not None and moved.conflicts and commit != moved.commit and contains(place, commit, moved.commit):
        if why := _why_unfit(place, moved, commit):
            return began, why
        git = view_git(place)
        sha = write_commit(git, f"{commit}^{{tree}}", (moved.base,), _message(git, moved.commit), sign=sign)
        moved = MovedWork(commit, moved.base, sha, was_checked=True)
        _remember(place, moved)
    return (moved if moved is not None and moved.commit == commit and not moved.conflicts else began), ""


def _why_unfit(place: Place, work: MovedWork, commit: str) -> str:
    """Return why a commit is not the given work on its new base; empty if it is.

    The commit must have all changes of the base. Its files with conflicts must have no line that the base removed.
    """
    git, paths = view_git(place), work.conflicts
    files, now, before = (read_files_at(git, sha, paths) for sha in (commit, work.base, place.base_sha))
    for path in paths:
        lines, kept, was = (set(each.get(path, b"").splitlines()) for each in (files, now, before))
        if any(line.startswith(_MARKER) for line in lines):
            return f"{path} still holds the markers of a conflict with it"
        if back := {line for line in was & lines - kept if line.strip()}:
            return f"{path} holds {len(back)} lines that were taken out of it"
    changed, kept_too = (_paths_between(git, work.commit, sha) for sha in (work.sha, commit))
    lost = changed - kept_too - {os.fsencode(path) for path in paths}
    return f"what it has changed in {shown_path(min(lost))} is not in the work" if lost else ""


def _paths_between(git: Git, since: str, sha: str) -> set[bytes]:
    return set(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", since, sha).split(b"\0")) - {b""}


def _message(git: Git, sha: str) -> str:
    return git.run("log", "-1", "--format=%B", sha).decode(errors="replace")


def _lay_over(place: Place, work: MovedWork, tip: str, *, sign: bool) -> MovedWork:
    """Return the work as one commit on `tip`, with the changes since the work's first base.

    git merges with the first base as common ancestor. With the real common ancestor of both bases, content that
    was removed from the base would count as a change of the work.
    """
    git = view_git(place)
    before = write_commit(git, f"{work.base}^{{tree}}", (), "before")
    ours = write_commit(git, f"{tip}^{{tree}}", (before,), "ours")
    theirs = write_commit(git, f"{work.sha}^{{tree}}", (before,), "theirs")
    merged = merge_commits(place, ours, theirs)
    sha = write_commit(git, merged.tree, (tip,), _message(git, work.sha), sign=sign and not merged.conflicts)
    return MovedWork(work.commit, tip, sha, merged.conflicts)


def _lost_base(place: Place, work: MovedWork, why: str) -> LostBaseError:
    branch = place.base_branch
    message = f"{branch} of {place.origin} was force-pushed and no longer holds {work.base[:_SHOWN]}, {why}."
    return LostBaseError(message, remedy=_REMEDY.format(branch=branch))
