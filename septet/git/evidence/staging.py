"""Stage the content of the next commit in an index of Septet; the agent's index is only read as data."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.snapshots.pipes import refuse_pipes
from septet.git.vault.survey import Survey
from septet.git.worktree.changes import StatusEntry, read_status, shown_path
from septet.git.worktree.dot_git import Head, unfinished_operation
from septet.git.worktree.view import hold_head, touched_index, view_folder, view_git


@dataclass(frozen=True, slots=True)
class Dirt:
    """The differences between a worktree and its HEAD."""

    git: Git
    """Septet's view of the worktree, with the index that was used to find the differences."""
    head: Head
    entries: tuple[StatusEntry, ...]
    """The changed paths that a commit would contain."""
    nested: tuple[bytes, ...]
    """Untracked repositories inside the worktree, which a commit cannot contain."""
    unfinished: str
    """A text on the operation that the agent did not finish, such as a merge; empty if there is none."""


def look(place: Place, survey: Survey | None = None) -> Dirt:
    """Return the differences between worktree and HEAD, from one git process, or from two if the agent used git.

    Raises:
        WorkspaceError: `.git` is missing, HEAD leads to no commit, or git would wait at a pipe.
        GitError: git could not read the worktree.
    """
    refuse_pipes(place.worktree, survey)
    head = hold_head(place)
    git, conflicts = _with_staged(place, head)
    # Inside a submodule git would start another git, which reads the submodule's own config: its HEAD is enough.
    output = git.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty")
    entries = tuple(read_status(output))
    return Dirt(
        git,
        head,
        entries=tuple(entry for entry in entries if not entry.is_nested_repository),
        nested=tuple(entry.path for entry in entries if entry.is_nested_repository),
        unfinished=_unfinished_work(place, conflicts),
    )


def new_files(place: Place) -> frozenset[bytes]:
    """Return the paths of untracked files that git does not ignore, relative to the worktree's root.

    Raises:
        WorkspaceError: `.git` is missing, HEAD leads to no commit, or git would wait at a pipe.
        GitError: git could not read the worktree.
    """
    return frozenset(entry.path for entry in look(place).entries if entry.is_untracked)


def stage(place: Place, dirt: Dirt) -> Git:
    """Return Septet's view with an index of everything in the worktree that is not ignored."""
    git = dirt.git.using_index(_copy_of_index(dirt.git, place))
    # Removed paths first: a symlink may be in their folder's place, and git refuses paths beyond a symlink.
    gone = b"".join(entry.path + b"\0" for entry in dirt.entries if entry.unstaged == "D")
    if gone:
        git.run("update-index", "--force-remove", "-z", "--stdin", stdin=gone)
    there = b"".join(entry.path + b"\0" for entry in dirt.entries if entry.unstaged not in {".", "D"})
    if there:
        git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=there)
    return git


def _with_staged(place: Place, head: Head) -> tuple[Git, tuple[bytes, ...]]:
    """Return Septet's view with the changes that the agent staged, and the conflicts in the agent's index.

    Of the agent's index, only two facts count, because the worktree shows the rest: the added paths (an ignored
    file by force, a submodule) and the removed paths (a file that is ignored from now on). The index's flags,
    which could hide changes, do not count.
    """
    git, content = view_git(place), touched_index(place)
    if content is None:
        return git, ()
    agents = view_folder(place) / "agents-index"
    agents.write_bytes(content)
    raw = git.using_index(agents).try_run(
        *("diff-index", "--cached", "--raw", "--no-renames", "--diff-filter=ADU", "--ignore-submodules=none"),
        *("-z", head.sha),
    )
    # An index that git cannot read stages nothing.
    pairs = raw.stdout.split(b"\0") if raw.exit_code == 0 else []
    staged = list(zip(pairs[::2], pairs[1::2], strict=False))
    conflicts = tuple(path for facts, path in staged if facts.endswith(b"U"))
    lines = [(*facts.split(b" "), path) for facts, path in staged if not facts.endswith(b"U")]
    changes = b"".join(b"%s %s\t%s\0" % (mode, sha, path) for _, mode, _, sha, _, path in lines)
    if changes:
        staging = git.using_index(_copy_of_index(git, place))
        # Paths that git refuses in an index are not staged either.
        if staging.try_run("update-index", "-z", "--index-info", stdin=changes).exit_code == 0:
            return staging, conflicts
    return git, conflicts


def _unfinished_work(place: Place, conflicts: tuple[bytes, ...]) -> str:
    if what := unfinished_operation(place.worktree / ".git"):
        return f"a {what} is still in progress"
    if conflicts:
        return f"the conflicts in {', '.join(map(shown_path, conflicts[:5]))} are not resolved"
    return ""


def staging_index(place: Place) -> Path:
    """Return the path of the index for staging, which is not the view's index of HEAD's tree."""
    return view_folder(place) / "staging-index"


def _copy_of_index(git: Git, place: Place) -> Path:
    staging = staging_index(place)
    staging.with_suffix(".lock").unlink(missing_ok=True)  # left by a git that was killed
    if git.index is not None and git.index != staging:
        shutil.copy2(git.index, staging)
    return staging
