"""Move a worktree to its branch's commit on the forge before a round, and merge other people's commits.

Other people's commits are never undone: the worktree moves forward to them, or they are merged with unpushed work.
"""

from dataclasses import dataclass
from typing import Final

from septet.errors import EvidenceError, GitError, GitUnavailableError
from septet.git.commits.push import is_own_push, remote_branch
from septet.git.engine.engine import Git
from septet.git.engine.git_words import shown_words
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote
from septet.git.evidence.evidence import contains, look, staging_index
from septet.git.snapshots.destroy import change_tree
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.survey import refuse_pipes
from septet.git.workspace.mirror import refresh_mirror
from septet.git.worktree.dot_git import clear_locks, read_head, refuse_links
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import hold_head, shown_path, take_index, view_folder, view_git

_MARKER: Final = b"\n<<<<<<< "
_MARKER_LIMIT_BYTES: Final = 4 * 1024 * 1024
_CONFLICTS: Final = 1


@dataclass(frozen=True, slots=True)
class RemoteTips:
    """The last commits of a work order's branch and of its base branch on the origin."""

    head: str
    """The last commit of the work order's branch."""
    base: str


@dataclass(frozen=True, slots=True)
class MergedTree:
    """The result of a merge: a tree, and the files in conflict."""

    tree: str
    conflicts: tuple[str, ...] = ()
    """The paths of files in conflict; some have no conflict markers."""


def fetch_tips(place: Place, branch: str, token: str | None) -> RemoteTips | None:
    """Fetch `branch` and the base branch into the mirror; return their last commits, or `None` without `branch`.

    Raises:
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    if (head := remote_branch(place, branch, token=token)) is None:
        return None
    base = refresh_mirror(place.mirror, Remote(place.origin, place.env, token), place.base_branch)
    if place.fork:
        target = f"+refs/heads/{branch}:refs/remotes/fork/{place.order_id}"
        Remote(place.fork, place.env, token).fetch(place.mirror, target)
    if Git(place.mirror, env=place.env).try_run("cat-file", "-e", f"{head}^{{commit}}").exit_code != 0:
        message = f"{branch} of {place.destination} moved while it was being fetched."
        raise GitUnavailableError(message, remedy="Septet tries again.")
    return RemoteTips(head, base.sha)


def is_clean(place: Place) -> bool:
    """Return whether the worktree has no change that a commit could include."""
    dirt = look(place)
    return not dirt.entries and not dirt.unfinished


def go_forward(place: Place, branch: str, head: str, options: SnapshotOptions) -> str:
    """Move a clean worktree forward to `head`, its branch's commit on the forge; return what must be merged.

    If other people have rewritten the branch since this work order's push, the worktree moves to their branch.

    `options.equal_to` is a snapshot of the present worktree.

    Returns:
        `head` if the worktree has unpushed commits and the forge has other commits; otherwise an empty string.
    """
    git_dir = place.worktree / ".git"
    clear_locks(git_dir)
    here = read_head(git_dir)
    if here.branch != branch:
        raise EvidenceError(f"HEAD is on {here.branch or 'no branch'}, and the work belongs on {branch}.")
    if contains(place, here.sha, head):
        return ""
    if not contains(place, head, here.sha) and not is_own_push(place, branch, here.sha):
        return head
    go_to(place, branch, head, options)
    return ""


def go_to(place: Place, branch: str, sha: str, options: SnapshotOptions) -> None:
    """Move a clean worktree and its branch to a commit."""
    here = read_head(place.worktree / ".git")
    refuse_links(place.worktree / ".git", branch)
    hold_head(place)
    git = with_copied_index(place)
    change_tree(place, git, here.sha, sha, options)
    git.run("update-ref", f"refs/heads/{branch}", sha, here.sha)
    take_index(place, staging_index(place), sha)


def merge_trees(place: Place, theirs: str) -> MergedTree:
    """Merge `theirs` with HEAD, and return the result; the worktree does not change.

    Raises:
        WorkspaceError: git would wait at a named pipe in the worktree.
        GitError: git cannot merge the commits.
    """
    refuse_pipes(place.worktree)
    return merge_commits(place, read_head(place.worktree / ".git").sha, theirs)


def merge_commits(place: Place, ours: str, theirs: str) -> MergedTree:
    """Merge two commits, and return the result.

    Raises:
        GitError: git cannot merge the commits.
    """
    completed = view_git(place).try_run(
        "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs
    )
    tree, *names = completed.stdout.rstrip(b"\0").split(b"\0")
    if completed.exit_code not in {0, _CONFLICTS} or not tree:  # for a missing commit git prints no tree
        raise GitError(f"{theirs[:12]} cannot be merged into {place.worktree}: {shown_words(completed.stderr)}")
    paths = tuple(dict.fromkeys(shown_path(name) for name in names if name))
    return MergedTree(tree.decode("ascii"), paths if completed.exit_code else ())


def lay_merge(place: Place, merge: MergedTree, options: SnapshotOptions) -> None:
    """Write the result of a merge into a clean worktree and the agent's index; HEAD does not change."""
    git_dir = place.worktree / ".git"
    refuse_links(git_dir)
    head = hold_head(place)
    git = with_copied_index(place)
    change_tree(place, git, head.sha, merge.tree, options)
    staging_index(place).replace(view_folder(place) / "merged-index")
    copy = git_dir / "index.septet"
    copy.unlink(missing_ok=True)
    copy.write_bytes((view_folder(place) / "merged-index").read_bytes())
    copy.replace(git_dir / "index")


def unresolved(place: Place, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths whose files still have a conflict marker at the start of a line."""
    contents = ((path, read_inside(place.worktree, path, _MARKER_LIMIT_BYTES)) for path in paths)
    return tuple(path for path, content in contents if _MARKER in b"\n" + (content or b""))


def with_copied_index(place: Place) -> Git:
    """Return Septet's view with a copy of the view's index; a killed git damages only the copied index."""
    staging = staging_index(place)
    staging.with_suffix(".lock").unlink(missing_ok=True)
    staging.write_bytes((view_folder(place) / "index").read_bytes())
    return view_git(place).using_index(staging)
