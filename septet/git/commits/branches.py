"""The branch of a work order: check its name, and create it."""

import os
import re
from collections.abc import Sequence
from typing import Final

from septet.contracts.repository import name_refusal
from septet.errors import EvidenceError, GitError
from septet.git.commits.push import is_own_push, protected_branches, pushed_branches
from septet.git.engine.place import Place
from septet.git.engine.remote import Remote, RemoteRefs
from septet.git.evidence.evidence import contains
from septet.git.worktree.dot_git import (
    clear_locks,
    read_head,
    read_ref,
    refuse_links,
    switch_head,
    unfinished_operation,
)
from septet.git.worktree.view import view_git

_HEADS: Final = "refs/heads/"
_NO_COMMIT: Final = "0" * 40


def branch_refusal(place: Place, name: str, *, began_at: str = "", token: str | None = None) -> str | None:
    """Return why `name` cannot be this work order's branch, as a text for the agent; `None` if it can.

    A branch on the remote is allowed if this work order or its agent pushed the branch's commit. The agent pushed
    a commit that is HEAD but not `began_at`, the commit of another work order that this work order continues.

    Raises:
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    try:
        free_name(place, (name,), began_at=began_at, token=token)
    except EvidenceError as error:
        return error.message
    return None


def remote_branches(place: Place, token: str | None = None) -> RemoteRefs:
    """Return the branches of the repository to which the work will be pushed, and its default branch.

    Raises:
        GitUnavailableError: The remote was not reached.
        GitError: The remote refused.
    """
    return Remote(place.destination, place.env, token).refs(place.mirror, "HEAD", f"{_HEADS}*")


def free_name(
    place: Place,
    names: Sequence[str],
    *,
    began_at: str = "",
    token: str | None = None,
    there: RemoteRefs | None = None,
) -> str:
    """Return the first of `names` that can be this work order's branch; see `branch_refusal`.

    Args:
        began_at: The commit of another work order that this work order continues; empty for a new start.
        there: The result of `remote_branches`, if it is known already.

    Raises:
        EvidenceError: No name is allowed.
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    usable = [usable_name(place, name) for name in names]
    there = there or remote_branches(place, token)
    refusals = []
    for name in usable:
        refusal = _refusal_there(place, name, there, began_at)
        if refusal is None:
            return name
        refusals.append(refusal)
    raise EvidenceError(refusals[0])


def _refusal_there(place: Place, name: str, there: RemoteRefs, began_at: str) -> str | None:
    """Return why a name conflicts with a branch on the remote, whatever the letter case; else `None`."""
    if f"{_HEADS}{name}" == there.head:
        return f"{name} is the default branch there: use another branch for the work"
    shas = _branch_shas(there)
    if name in shas:
        sha = shas[name]
        is_agents = sha == read_head(place.worktree / ".git").sha and sha != began_at
        ours = is_agents or is_own_push(place, name, sha)
        return None if ours else f"the remote already has a branch {name} with other commits: choose another name"
    folded = name.casefold()
    for other in shas:
        if other.casefold() == folded:
            return f"the remote has a branch {other}, which differs in case alone: choose another name"
        if f"{folded}/".startswith(f"{other.casefold()}/") or other.casefold().startswith(f"{folded}/"):
            return f"the remote has a branch {other}, so it cannot have a branch {name}: choose another name"
    return None


def _branch_shas(there: RemoteRefs) -> dict[str, str]:
    return {ref.removeprefix(_HEADS): sha for ref, sha in there.shas.items() if ref.startswith(_HEADS)}


def branches_of(
    place: Place, order_id: str, number: str = "", *, token: str | None = None, there: RemoteRefs | None = None
) -> dict[str, str | None]:
    """Return the origin's branches that may be a work order's, with their commits.

    These are branches with the work order's id or the issue's `number` in their names, and branches that the work
    order has pushed. A pushed branch that was deleted has the commit `None`. `there` is the result of
    `remote_branches`, if it is known already.

    Raises:
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    pushed = pushed_branches(place)
    shas = _branch_shas(there or remote_branches(place, token))
    words = [rf"(?<![A-Za-z0-9]){re.escape(order_id)}(?![A-Za-z0-9])"]
    words += [rf"\b(?:bug|feat|chore|work)-{re.escape(number)}(?:-|$)"] if number else []
    word = re.compile("|".join(words))
    named = {name: sha for name, sha in shas.items() if word.search(name)}
    return {**{name: shas.get(name) for name in pushed}, **named}


def create_branch(place: Place, name: str) -> None:
    """Create the branch `name` at HEAD, and check it out without changing files or index.

    Idempotent: the agent or an earlier attempt may have checked out the branch already.

    Raises:
        EvidenceError: The worktree has a branch of this name with other commits.
        WorkspaceError: `.git` is damaged, or HEAD moved meanwhile.
        GitError: git could not make the branch.
    """
    dot_git = place.worktree / ".git"
    head = read_head(dot_git)
    if head.branch == name:
        return
    clear_locks(dot_git)
    refuse_links(dot_git, name)
    git, ref = view_git(place), f"{_HEADS}{name}"
    try:
        git.run("update-ref", ref, head.sha, _NO_COMMIT)
    except GitError as error:
        there = git.try_run("rev-parse", "--verify", "--quiet", ref).stdout.decode("ascii").strip()
        if not there:
            raise
        if there != head.sha:
            message = f"The worktree has a branch {name} with other commits, and it is not checked out."
            raise EvidenceError(message) from error
    switch_head(dot_git, name, head)


def bring_branch_to_head(place: Place, name: str, since: str) -> str:
    """Move branch `name` forward to HEAD and check it out, if an agent left HEAD on another branch or on none.

    Files and index stay. Nothing changes if HEAD lacks the work's first commit `since` or a commit of the branch,
    or if an operation such as a merge is unfinished.

    Returns:
        A text on where HEAD was before; empty if nothing changed.

    Raises:
        WorkspaceError: `.git` is damaged, or HEAD moved meanwhile.
        GitBusyError: A living git holds a lock.
    """
    dot_git = place.worktree / ".git"
    head = read_head(dot_git)
    if head.branch == name or unfinished_operation(dot_git):
        return ""
    clear_locks(dot_git)
    refuse_links(dot_git, name)
    ref = f"{_HEADS}{name}"
    was = (read_ref(dot_git, os.fsencode(ref)) or _NO_COMMIT.encode()).strip().decode(errors="replace")
    if not re.fullmatch(r"[0-9a-f]{40}", was):
        return ""
    if not all(contains(place, head.sha, older) for older in {since, was} - {_NO_COMMIT}):
        return ""
    if view_git(place).try_run("update-ref", ref, head.sha, was).exit_code != 0:
        return ""
    switch_head(dot_git, name, head)
    return f"branch {head.branch}" if head.branch else "no branch"


def usable_name(place: Place, name: str) -> str:
    """Return `name` if a work order's branch may have it; the origin's branches are not checked.

    Raises:
        EvidenceError: The name is not allowed.
    """
    if refusal := name_refusal(name):
        raise EvidenceError(refusal)
    if name in protected_branches(place):
        raise EvidenceError(f"{name} is where the work starts from: use another branch for the work")
    return name
