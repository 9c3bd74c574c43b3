"""Merges of the `local` forge: in the repository itself, without a worktree."""

from septet.errors import ForgeError
from septet.git.engine import Git


def holds(git: Git, branch: str, commit: str) -> bool:
    """Say whether a branch holds a commit; not where either is unknown."""
    if not commit:
        return False
    return git.try_run("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}").exit_code == 0


def merge_branch(git: Git, base: str, head: str, message: str) -> str:
    """Merge branch `head` into `base` and return the merge's commit; the empty string where the base just moved.

    Args:
        git: The repository, with an identity in its environment.
        base: The branch that moves.
        head: The branch that it is to hold.
        message: Of the merge's commit.

    Raises:
        ForgeError: They conflict, or one of them is gone.
        GitError: git failed.
    """
    before, head_commit = (_commit(git, branch) for branch in (base, head))
    merge = git.try_run("merge-tree", "--write-tree", "--name-only", "--no-messages", before, head_commit)
    tree, _, conflicts = merge.stdout.decode(errors="replace").strip().partition("\n")
    if merge.exit_code != 0:
        where = ", ".join(conflicts.split("\n")[:10])
        raise ForgeError(
            f"{head} cannot be merged into {base}: {where or 'git refused'}.",
            remedy="Merge it in a checkout, resolve the conflicts there, and push.",
        )
    commit = git.text("commit-tree", tree, "-p", before, "-p", head_commit, "-m", message)
    update = git.try_run("update-ref", f"refs/heads/{base}", commit, before)
    return commit if update.exit_code == 0 else ""


def _commit(git: Git, branch: str) -> str:
    commit = git.try_run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").stdout.decode("ascii").strip()
    if not commit:
        raise ForgeError(f"The branch {branch} no longer exists.")
    return commit
