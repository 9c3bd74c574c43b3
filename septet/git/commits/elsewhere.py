"""Find work that an agent has left in the clone outside of worktree and HEAD: stashes, branches, worktrees."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.commits.rework_tree import with_copied_index
from septet.git.engine.place import Place
from septet.git.evidence.evidence import contains
from septet.git.snapshots.destroy import change_tree
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import first_and_last, vault_at
from septet.git.worktree.dot_git import Head, read_ref
from septet.git.worktree.inside import read_inside
from septet.git.worktree.view import hold_head, shown_path, view_git

_MOST: Final = 5
"""The most worktrees, and the most branches, that a text names."""
_SHA: Final = re.compile(rb"[0-9a-f]{40}")
_BRANCH: Final = b"ref: refs/heads/"


def work_elsewhere(place: Place, head: Head, own_branch: str | None) -> tuple[str, ...]:
    """Return texts about work that HEAD lacks: stashes, other worktrees, other branches, a commit on no branch.

    Raises:
        WorkspaceError: A file of `.git` that git would read is not a plain file.
    """
    worktrees = dict(_worktrees(place))
    told = (
        f"the worktree {path}, {f'on branch {at}' if at else 'on no branch'}" for path, at in worktrees.items()
    )
    branches = _branches_beside(place, head, {own_branch, *worktrees.values()})
    return (*_stash(place), *told, *branches, *_commit_on_no_branch(place, head))


def lay_back(place: Place, head: Head, options: SnapshotOptions) -> bool:
    """Copy the files of the latest stash, or else of a branch, into the worktree, unless that overwrites files.

    The stash or branch must contain HEAD. HEAD, branches, stash and the agent's index stay. Returns whether any
    file was copied.

    Raises:
        SnapshotError: No snapshot could be taken first; nothing was changed.
        WorkspaceError: git would wait at a named pipe in the worktree.
    """
    known = first_and_last(vault_at(place), place.order_id)
    stash = (read_ref(place.worktree / ".git", b"refs/stash") or b"").strip().decode(errors="replace")
    branches = view_git(place).try_run(
        "for-each-ref", f"--no-merged={head.sha}", "--format=%(objectname)", "refs/heads/"
    )
    shas = [sha for sha in (stash, *branches.stdout.decode().split()) if _SHA.fullmatch(sha.encode())]
    sha = next((sha for sha in shas if contains(place, sha, head.sha)), "")
    if not sha or known is None:
        return False
    hold_head(place)
    try:
        tree = _whole_tree(place, sha)
        change_tree(place, with_copied_index(place), head.sha, tree, replace(options, equal_to=known[1]))
    except GitError:  # a file would be overwritten
        return False
    return True


def _whole_tree(place: Place, sha: str) -> str:
    """Return `sha`; for a stash, a tree that includes its untracked files."""
    unknown = view_git(place).try_run("rev-parse", "--verify", "--quiet", f"{sha}^3").stdout.decode().strip()
    if not unknown:
        return sha
    git = with_copied_index(place)
    git.run("read-tree", sha)
    git.run("read-tree", "--prefix=", unknown)
    return git.text("write-tree")


def work_beside(place: Place, head: Head, own_branch: str | None) -> tuple[str, ...]:
    """Return texts about stashes, and about branches other than `own_branch` with commits that HEAD lacks."""
    return (*_stash(place), *_branches_beside(place, head, {own_branch}))


def _stash(place: Place) -> tuple[str, ...]:
    if _SHA.fullmatch((read_ref(place.worktree / ".git", b"refs/stash") or b"").strip()) is None:
        return ()
    entries = _read(place, "logs/refs/stash").count(b"\n")
    return (f"a stash with {entries} entries" if entries > 1 else "a stash",)


def _worktrees(place: Place) -> Iterator[tuple[str, str]]:
    """Yield the folder and the branch of each further worktree of the clone."""
    folder = place.worktree / ".git" / "worktrees"
    if folder.is_symlink() or not folder.is_dir():
        return
    for name in sorted(each.name for each in folder.iterdir())[:_MOST]:
        path = Path(os.fsdecode(_read(place, f"worktrees/{name}/gitdir").strip())).parent
        inside = path.relative_to(place.worktree) if path.is_relative_to(place.worktree) else path
        at = _read(place, f"worktrees/{name}/HEAD").strip()
        yield (
            shown_path(os.fsencode(inside)),
            shown_path(at.removeprefix(_BRANCH)) if at.startswith(_BRANCH) else "",
        )


def _branches_beside(place: Place, head: Head, others: set[str | None]) -> tuple[str, ...]:
    options = (f"--no-merged={head.sha}", "--format=%(refname:lstrip=2)")
    listed = view_git(place).try_run("for-each-ref", *options, "refs/heads/").stdout.splitlines()
    return tuple(f"branch {name}" for name in map(shown_path, listed) if name not in others)[:_MOST]


def _commit_on_no_branch(place: Place, head: Head) -> tuple[str, ...]:
    """Return a text for the newest commit in HEAD's reflog that neither HEAD nor a branch contains; else `()`."""
    steps = (line.split(b" ") for line in _read(place, "logs/HEAD").splitlines()[-50:])
    shas = {words[1].decode("ascii") for words in steps if len(words) > 1 and _SHA.fullmatch(words[1])}
    options = ("--ignore-missing", "--max-count=1", "--abbrev-commit", "--abbrev=12")
    if not shas:
        return ()
    listed = view_git(place).try_run("rev-list", *options, *shas, "--not", head.sha, "--branches").stdout.decode()
    return (f"commit {listed.strip()}, on no branch",) if listed else ()


def _read(place: Place, path: str) -> bytes:
    """Return the content of a file in `.git`; empty if it is missing or a link."""
    return read_inside(place.worktree, f".git/{path}", limit_bytes=1 << 22) or b""
