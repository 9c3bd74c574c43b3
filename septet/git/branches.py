"""The branch of a work order: whether its name may be used, and its making."""

import os
import re
from typing import Final

from septet.errors import EvidenceError, GitError
from septet.git.dot_git import clear_locks, read_head, read_ref, refuse_links, switch_head, unfinished_operation
from septet.git.evidence import contains
from septet.git.own_pushes import is_own_push, pushed_branches
from septet.git.place import Place
from septet.git.record import record_of
from septet.git.remote import Remote
from septet.git.view import view_git

_NO_NAMES: Final = ("-", "refs/", "remotes/", "heads/", "origin/")
"""What begins an option, or the full name of a ref."""
_NO_COMMIT: Final = "0" * 40
_SHA: Final = re.compile(r"[0-9a-f]{40}")
_LONGEST: Final = 200
_PLAIN: Final = re.compile(r"[A-Za-z0-9._/-]+")
"""What no shell, script or web page takes for anything else, and nobody for another name."""
_REFUSED: Final = re.compile(r"^/|/$|//|(?:^|/)\.|\.\.|\.$|\.lock(?:/|$)|@\{|[\x00-\x20\x7f~^:?*\[\\]")


def branch_refusal(place: Place, name: str, *, began_at: str = "", token: str | None = None) -> str | None:
    """Return why `name` cannot be this work order's branch, in words that the agent can act on; else `None`.

    A branch at a commit that the engine pushed for this work order is its own. So is one that the remote has at
    the worktree's HEAD, for the agent has pushed it; but not at `began_at`, the commit of another work order that
    this one goes on from.

    Args:
        place: The work order's place.
        name: The name.
        began_at: The commit that the work order goes on from, where that is another work order's.
        token: The forge's key.

    Raises:
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    if refusal := _name_refusal(place, name):
        return refusal
    parts = name.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    patterns = [f"refs/heads/{pattern}" for pattern in (name, f"{name}/*", *above)]
    there = Remote(place.destination, place.env, token).refs(place.mirror, "HEAD", *patterns)
    shas = {ref: sha for ref, sha in there.shas.items() if ref.startswith("refs/heads/")}
    own = f"refs/heads/{name}"
    if own == there.head:
        return f"{name} is the default branch there: use another branch for the work"
    if own in shas:
        sha = shas[own]
        is_agents = sha == read_head(place.worktree / ".git").sha and sha != began_at
        ours = is_agents or is_own_push(place, name, sha)
        return None if ours else f"the remote already has a branch {name} with other commits: choose another name"
    for above_or_below in shas:
        if own.startswith(f"{above_or_below}/") or above_or_below.startswith(f"{own}/"):
            name_there = above_or_below.removeprefix("refs/heads/")
            return f"the remote has a branch {name_there}, so it cannot have a branch {name}: choose another name"
    return None


def branches_of(place: Place, order_id: str, *, token: str | None = None) -> dict[str, str | None]:
    """Return the origin's branches that may be a work order's, with their commits.

    They are those that hold its id as a word, and those that it has pushed to; one of these that is gone has none.

    Raises:
        GitUnavailableError: The origin was not reached.
        GitError: The origin refused.
    """
    pushed = pushed_branches(place)
    patterns = (f"refs/heads/*{order_id}*", *(f"refs/heads/{name}" for name in pushed))
    shas = Remote(place.destination, place.env, token).refs(place.mirror, *patterns).shas
    there = {ref.removeprefix("refs/heads/"): sha for ref, sha in shas.items()}
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(order_id)}(?![A-Za-z0-9])")
    named = {name: sha for name, sha in there.items() if word.search(name)}
    return {**{name: there.get(name) for name in pushed}, **named}


def create_branch(place: Place, name: str) -> None:
    """Make branch `name` at HEAD and the worktree's current branch; files and index stay as they are.

    Idempotent: a branch that is checked out already, by the agent or an attempt before this one, is fine.

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
    git, ref = view_git(place), f"refs/heads/{name}"
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
    """Let branch `name` go forward to HEAD, where an agent has left HEAD on a branch of its own or on none.

    Files and index stay as they are. Where HEAD lacks a commit of the branch, or of where the work began, or
    something is under way, nothing changes.

    Args:
        place: The work order's place.
        name: The branch on which the work belongs.
        since: The commit that the work began from.

    Returns:
        Where HEAD was, in words; the empty string where nothing changed.

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
    was = (
        (read_ref(dot_git, os.fsencode(f"refs/heads/{name}")) or _NO_COMMIT.encode())
        .strip()
        .decode(errors="replace")
    )
    if not _SHA.fullmatch(was):
        return ""
    if not all(contains(place, head.sha, older) for older in {since, was} - {_NO_COMMIT}):
        return ""
    if view_git(place).try_run("update-ref", f"refs/heads/{name}", head.sha, was).exit_code != 0:
        return ""
    switch_head(dot_git, name, head)
    return f"branch {head.branch}" if head.branch else "no branch"


def is_branch_name(name: str) -> bool:
    """Say whether git takes `name` for a branch, as git-check-ref-format(1) has it, without a process."""
    return bool(name) and _REFUSED.search(name) is None


def protected_branches(place: Place) -> frozenset[str]:
    """Return the branches that a work order never writes: where it started, and the origin's default."""
    return frozenset({place.base_branch, record_of(place).default_branch} - {""})


def usable_name(place: Place, name: str) -> str:
    """Return a name that a work order's branch may have, whatever the origin holds.

    Raises:
        EvidenceError: It may not have this name.
    """
    if refusal := _name_refusal(place, name):
        raise EvidenceError(refusal)
    return name


def _name_refusal(place: Place, name: str) -> str | None:
    if not name or name.startswith(_NO_NAMES) or name in {"HEAD", "@"}:
        return f"{name!r} is not a name for a branch"
    if len(name) > _LONGEST:
        return f"{name[:40]}… is longer than {_LONGEST} characters"
    if not is_branch_name(name):
        return f"{name!r} is not a branch name that git accepts"
    if not _PLAIN.fullmatch(name):
        return f"{name!r} has characters other than English letters, digits and . _ - /"
    if name in protected_branches(place):
        return f"{name} is where the work starts from: use another branch for the work"
    return None
