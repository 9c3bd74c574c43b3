"""A person's own checkout: what of it is not committed, and bringing it forward after a merge."""

import shlex
from pathlib import Path
from typing import Final

from septet.errors import ForgeError, GitError
from septet.git.engine import Git
from septet.settings import load_settings

_NAMES_SHOWN: Final = 5


def uncommitted_changes(path: Path, *, untracked: bool = True) -> list[str]:
    """Return the files of a checkout that differ from its last commit; none where that cannot be told."""
    if not path.is_absolute() or not (path / ".git").is_dir():
        return []
    try:
        printed = checkout_git(path).run(
            "status", "--porcelain", "-z", f"--untracked-files={'normal' if untracked else 'no'}"
        )
    except GitError:
        return []
    entries = printed.decode("utf-8", "replace").split("\0")
    names, at = [], 0
    while at < len(entries) and entries[at]:
        names.append(entries[at][3:])
        at += 2 if entries[at][0] in "RC" else 1  # the old name follows
    return names


def checkout_git(path: Path) -> Git:
    """Return git on a checkout that is a person's own."""
    return Git(path / ".git", path, load_settings().git_env)


def fast_forward(path: Path, base: str, head: str) -> bool:
    """Bring the checkout of a base branch forward to a branch; return whether it is checked out there at all.

    Raises:
        ForgeError: The checkout has changes, or the branch does not begin at its commit; the remedy can be typed.
    """
    if not (path / ".git").is_dir():
        return False
    git = checkout_git(path)
    if git.try_run("symbolic-ref", "--quiet", "HEAD").stdout.decode().strip() != f"refs/heads/{base}":
        return False
    remedy = f"Merge it there yourself; Septet notices the merge: git -C {shlex.quote(str(path))} merge {head}"
    if changes := uncommitted_changes(path, untracked=False):
        message = (
            f"{base} is checked out in {path} with uncommitted changes ({', '.join(changes[:_NAMES_SHOWN])})."
        )
        raise ForgeError(message, remedy=remedy)
    if git.try_run("merge-base", "--is-ancestor", f"refs/heads/{base}", f"refs/heads/{head}").exit_code != 0:
        message = f"{base} is checked out in {path}, and has commits that {head} does not have."
        raise ForgeError(message, remedy=remedy)
    merged = git.try_run("merge", "--ff-only", "--quiet", f"refs/heads/{head}")
    if merged.exit_code != 0:
        raise ForgeError(f"{base} could not be fast-forwarded in {path}.", remedy=remedy)
    return True
