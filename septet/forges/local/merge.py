"""Merges of the `local` forge, which also update a clean checkout of the base."""

import shlex
import tempfile
from pathlib import Path
from typing import Final

from septet.errors import RefusedTransitionError
from septet.git.engine.engine import Git
from septet.system.text import name_some

_NAMED: Final = 10
_UNDER_WAY: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_NO_VALUE: Final = frozenset({b"unspecified", b"unset"})


def holds(git: Git, branch: str, commit: str) -> bool:
    """Return whether a branch contains a commit; false if git does not know one of them."""
    if not commit:
        return False
    return git.try_run("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}").exit_code == 0


def merge_branch(git: Git, base: str, head: str, message: str, *, only_try: bool = False) -> str:
    """Merge branch `head` into `base`, and return the merge commit; empty if the base moved meanwhile.

    A checkout of the base is updated too. No hook and no program of git's settings runs. `git` must have an
    identity in its environment. With `only_try` nothing changes.

    Raises:
        RefusedTransitionError: git cannot merge, or a checkout of the base is in the way; a person must merge.
        GitError: git failed.
    """
    before, head_commit = (_commit(git, branch) for branch in (base, head))
    checkout = _checkout_of(git, base)
    remedy = "Merge it in a checkout, resolve the conflicts there, and push."
    if checkout is not None:
        where = shlex.quote(str(checkout.work_tree))
        remedy = f"Merge it there yourself; Septet notices the merge: git -C {where} merge {shlex.quote(head)}"
    merge = git.try_run("merge-tree", "--write-tree", "--name-only", "--no-messages", before, head_commit)
    tree, _, conflicts = merge.stdout.decode(errors="replace").strip().partition("\n")
    if merge.exit_code != 0:
        where = name_some(conflicts.split("\n"), _NAMED)
        why = f"conflicts in {where}" if conflicts else "git refused"
        raise RefusedTransitionError(f"{head} cannot be merged into {base}: {why}.", remedy=remedy)
    commit = git.text("commit-tree", tree, "-p", before, "-p", head_commit, "-m", message)
    if checkout is not None:
        _see_that_it_can_move(checkout, base, before, commit, remedy)
    if only_try:
        return commit
    if checkout is not None:
        checkout.run("read-tree", "-m", "-u", before, commit)
    if git.try_run("update-ref", "-m", message, f"refs/heads/{base}", commit, before).exit_code == 0:
        return commit
    if checkout is not None:
        checkout.run("read-tree", "-m", "-u", commit, before)
    return ""


def _checkout_of(git: Git, branch: str) -> Git | None:
    """Return the worktree that has a branch checked out; `None` if no worktree has."""
    path: Path | None = None
    for line in git.text("worktree", "list", "--porcelain").split("\n"):
        key, _, value = line.partition(" ")
        if key == "worktree":
            path = Path(value)
        elif key == "branch" and value == f"refs/heads/{branch}" and path and (path / ".git").exists():
            return Git(path / ".git", path, git.env)
    return None


def _see_that_it_can_move(checkout: Git, base: str, before: str, after: str, remedy: str) -> None:
    stands = f"{base} is checked out in {checkout.work_tree}"
    if any((Path(checkout.text("rev-parse", "--absolute-git-dir")) / name).exists() for name in _UNDER_WAY):
        raise RefusedTransitionError(f"{stands}, where a merge is in progress.", remedy="Finish it there first.")
    checkout.try_run("update-index", "-q", "--refresh")
    changed = checkout.run("diff-index", "--name-only", "-z", "--ignore-submodules=dirty", before, "--")
    if changed:
        names = name_some(changed.decode(errors="replace").rstrip("\0").split("\0"), _NAMED)
        aside = f"git -C {shlex.quote(str(checkout.work_tree))} stash"
        raise RefusedTransitionError(
            f"{stands} with uncommitted changes ({names}).",
            remedy=f"Commit them there, or put them aside ({aside}); then merge again.",
        )
    if filtered := _filtered(checkout, before, after):
        message = f"{stands}, and git changes {name_some(filtered, _NAMED)} by a filter or an encoding."
        raise RefusedTransitionError(message, remedy=remedy)
    if (move := checkout.try_run("read-tree", "-n", "-m", "-u", before, after)).exit_code != 0:
        reason = move.stderr.decode(errors="replace").strip().removeprefix("error: ").partition("\n")[0]
        raise RefusedTransitionError(f"{stands}, and git cannot move it: {reason}", remedy=remedy)


def _filtered(checkout: Git, before: str, after: str) -> list[str]:
    """Return the changed paths whose content a filter program in git's settings would change."""
    changed = checkout.run("diff-tree", "-r", "--name-only", "-z", "--no-renames", before, after)
    with tempfile.TemporaryDirectory(prefix="septet-") as folder:
        at_end = checkout.using_index(Path(folder) / "index")
        at_end.run("read-tree", after)
        printed = at_end.run(
            "check-attr", "-z", "--cached", "--stdin", "filter", "working-tree-encoding", stdin=changed
        )
    fields = printed.split(b"\0")
    found = {path for path, value in zip(fields[::3], fields[2::3], strict=False) if value not in _NO_VALUE}
    return sorted(path.decode(errors="replace") for path in found)


def _commit(git: Git, branch: str) -> str:
    commit = git.try_run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").stdout.decode("ascii").strip()
    if not commit:
        raise RefusedTransitionError(f"The branch {branch} no longer exists.")
    return commit
