"""What git shows of a worktree, whatever the agent's answer is.

Septet stages the next commit in its own index. It reads the agent's index only as data.
"""

import shutil
import time
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from septet.contracts.facts import FileChange
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.vault.contents import clock_step_ns
from septet.git.vault.survey import FIGURES, GIT_FOLDER, Look, Survey, refuse_pipes
from septet.git.worktree.dot_git import Head, read_head, unfinished_operation
from septet.git.worktree.view import (
    StatusEntry,
    file_changes,
    hold_head,
    read_name_status,
    read_status,
    shown_path,
    touched_index,
    view_folder,
    view_git,
)


@dataclass(frozen=True, slots=True)
class Dirt:
    """How a worktree differs from its HEAD."""

    git: Git
    """Septet's view of the worktree, with the index in which the differences were found."""
    head: Head
    entries: tuple[StatusEntry, ...]
    """The changed paths that a commit would include."""
    nested: tuple[bytes, ...]
    """Untracked repositories in the worktree, which no commit can include."""
    unfinished: str
    """The operation that the agent left unfinished, such as a merge, as a text; empty if there is none."""


def look(place: Place, survey: Survey | None = None) -> Dirt:
    """Return how the worktree differs from HEAD; this takes one git process, or two if the agent used git.

    If a survey shows that nothing has changed since the last call with a survey, no process runs.

    Raises:
        WorkspaceError: `.git` is missing, HEAD leads to no commit, or git would wait at a named pipe.
        GitError: git could not read the worktree.
    """
    refuse_pipes(place.worktree, survey)
    head = hold_head(place)
    git, conflicts = _with_staged(place, head)
    if survey is not None and git.index == view_folder(place) / "index":
        output = _recall_status_output(git, place, head, survey)
    else:
        output = read_status_output(git)
    entries = tuple(read_status(output))
    return Dirt(
        git,
        head,
        entries=tuple(entry for entry in entries if not entry.is_nested_repository),
        nested=tuple(entry.path for entry in entries if entry.is_nested_repository),
        unfinished=_unfinished_work(place, conflicts),
    )


def new_files(place: Place) -> frozenset[bytes]:
    """Return the relative paths of untracked files that git does not ignore.

    Raises:
        WorkspaceError: `.git` is missing, HEAD leads to no commit, or git would wait at a named pipe.
        GitError: git could not read the worktree.
    """
    return frozenset(entry.path for entry in look(place).entries if entry.is_untracked)


def stage(place: Place, dirt: Dirt) -> Git:
    """Return Septet's view of the worktree, with an index of all files that are not ignored."""
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
    """Return Septet's view of the worktree with what the agent staged, and the agent's unmerged paths.

    Of the agent's index, only added paths (an ignored file, a submodule) and removed paths (a file that is now
    ignored) count. All else is read from the worktree. Flags, which could hide changes, do not count.
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
    """Return the path of the index for the next commit; the view's own index stays as it is."""
    return view_folder(place) / "staging-index"


def _copy_of_index(git: Git, place: Place) -> Path:
    staging = staging_index(place)
    staging.with_suffix(".lock").unlink(missing_ok=True)  # left by a git that was killed
    if git.index is not None and git.index != staging:
        shutil.copy2(git.index, staging)
    return staging


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a step has left in a worktree."""

    head: Head
    files_changed: tuple[FileChange, ...]
    """Every file that differs from the compared commit, committed or not."""
    clean: bool
    """Whether the worktree has no change that a commit could include."""
    left_out: tuple[str, ...]
    """Untracked repositories in the worktree, which no commit can include."""
    unfinished: str
    """The operation that the agent left unfinished, such as a merge, as a text; empty if there is none."""


def gather(place: Place, since: str | None = None, survey: Survey | None = None) -> Evidence:
    """Return the state of a worktree, with its difference from commit `since`, by default the base commit.

    This takes one git process if the agent has not used git, and at most five.

    Raises:
        WorkspaceError: `.git` is missing, or HEAD leads to no commit.
        GitError: git could not read the worktree, or does not know `since`.
    """
    dirt = look(place, survey)
    return Evidence(
        head=dirt.head,
        files_changed=_files_changed(place, dirt, since or place.base_sha),
        clean=not dirt.entries,
        left_out=tuple(shown_path(path.rstrip(b"/")) for path in dirt.nested),
        unfinished=dirt.unfinished,
    )


def current_head(place: Place) -> Head:
    """Return the worktree's branch and commit; this starts no git.

    Raises:
        WorkspaceError: `.git` is missing, or HEAD leads to no commit.
    """
    return read_head(place.worktree / ".git")


def keeps(place: Place, sha: str) -> bool:
    """Return whether the worktree's HEAD contains a commit.

    Raises:
        WorkspaceError: `.git` is missing, or HEAD leads to no commit.
    """
    return contains(place, current_head(place).sha, sha)


def contains(place: Place, sha: str, older: str) -> bool:
    """Return whether commit `sha` contains commit `older`; false if the worktree lacks one of them."""
    if sha == older:
        return True
    return view_git(place).try_run("merge-base", "--is-ancestor", older, sha).exit_code == 0


def is_ignored(place: Place, path: str) -> bool:
    """Return whether a `.gitignore` keeps a file of the worktree out of commits.

    Raises:
        WorkspaceError: `.git` is damaged.
        GitError: git could not read the worktree.
    """
    return bool(view_git(place).run("ls-files", "--others", "--ignored", "--exclude-standard", "--", path))


def is_in_commit(place: Place, sha: str, path: str) -> bool:
    """Return whether a commit of the worktree's repository contains a file.

    Raises:
        WorkspaceError: `.git` is damaged.
    """
    return view_git(place).try_run("cat-file", "-e", f"{sha}:{path}").exit_code == 0


def _files_changed(place: Place, dirt: Dirt, since: str) -> tuple[FileChange, ...]:
    if dirt.head.sha == since and not _may_hold_renames(dirt.entries):
        return file_changes(entry.change for entry in dirt.entries if entry.change is not None)
    staged = stage(place, dirt) if dirt.entries else dirt.git
    # A `.gitmodules` may set git to ignore a submodule that has moved.
    options = ("--find-renames", "--name-status", "--ignore-submodules=none", "-z")
    output = staged.run("diff-index", "--cached", *options, since, "--")
    return file_changes(read_name_status(output))


def _may_hold_renames(entries: Iterable[StatusEntry]) -> bool:
    """Return whether a file is missing and another is untracked, so that git must search for renames."""
    kinds = {(entry.is_untracked, "D" in (entry.staged, entry.unstaged)) for entry in entries}
    return (True, False) in kinds and any(is_gone for _, is_gone in kinds)


_PASSED: Final = tuple(GIT_FOLDER + b"/" + name for name in (b"objects", b"refs", b"logs"))
"""Folders of `.git` on which `git status` depends only through HEAD."""
_CTIME: Final = 3
"""The index of the change time in the numbers that a survey has for a name."""
_MOST_STATUSES: Final = 16
_MOST_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class _Status:
    """The output of `git status`, and the state of the worktree to which the output belongs."""

    head: str
    looks: dict[bytes, Look]
    closed: dict[bytes, str]
    output: bytes = b""


_statuses: Final = dict[Path, _Status]()
"""The last status of each worktree, by the folder of its records, for use while no file changes."""


def read_status_output(git: Git) -> bytes:
    """Return the output of `git status`; a submodule counts as changed only if its commit differs."""
    # Inside a submodule git would start another git, which reads the submodule's own config: its HEAD is enough.
    return git.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty")


def _recall_status_output(git: Git, place: Place, head: Head, survey: Survey) -> bytes:
    """Return the output of `git status`; git runs only if a file or HEAD has changed since the last call."""
    looks = {
        path: look for path, look in survey.looks.items() if path != GIT_FOLDER and not path.startswith(_PASSED)
    }
    now = _Status(head.sha, looks, survey.closed)
    last = _statuses.pop(place.records, None)
    is_same = last is not None and replace(last, output=b"") == now
    status = last if last is not None and is_same else replace(now, output=read_status_output(git))
    if sum(len(look.figures) for look in looks.values()) <= _MOST_BYTES and (is_same or _is_settled(looks)):
        if len(_statuses) >= _MOST_STATUSES:
            _statuses.clear()
        _statuses[place.records] = status
    return status.output


def _is_settled(looks: Mapping[bytes, Look]) -> bool:
    """Return whether all files are so old that a write from now on gives any of them a new time stamp."""
    times = (array("q", look.figures)[_CTIME::FIGURES] for look in looks.values())
    newest = max((max(each, default=0) for each in times), default=0)
    return newest + clock_step_ns(newest) < time.time_ns()
