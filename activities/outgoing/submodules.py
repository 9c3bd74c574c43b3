"""Refuse work that points to a submodule's commit which the submodule's origin does not have."""

from typing import Final

from activities.host.claims import AnyClaim
from activities.host.host import Host
from septet.errors import EvidenceError, ForgeError, GitError, NotFoundError
from septet.git.engine.remote import Remote
from septet.git.evidence.submodules import (
    MovedSubmodule,
    edits_inside,
    has_commit,
    has_submodules,
    moved_submodules,
    origin_of,
)
from septet.git.vault.vault import find, vault_at
from septet.system.text import cut, name_some

_MOST_ASKED: Final = 20
_SHOWN: Final = 200


def refuse_lost_submodules(host: Host, claim: AnyClaim, tree: str) -> tuple[str, ...]:
    """Raise if the work moves a submodule to a commit that the submodule's origin does not have.

    Returns:
        A warning for each submodule whose origin could not be checked.

    Raises:
        EvidenceError: An origin lacks the commit; the message names what the agent has to do.
        GitError: git could not list the moved submodules.
    """
    moved, own_commits, warnings = moved_submodules(claim.place, claim.began_at, tree), [], []
    for number, each in enumerate(moved):
        try:
            if not (each.url and _is_there(host, claim, each, number)):
                own_commits.append(each)
        except (EvidenceError, ForgeError, GitError, NotFoundError) as error:
            named = f"{cut(each.path, _SHOWN)} is moved to {each.sha}"
            warnings.append(f"{named}: whether its origin has that commit was not found out: {error}")
    if own_commits:
        raise EvidenceError(_words(own_commits))
    return tuple(warnings)


def _is_there(host: Host, claim: AnyClaim, submodule: MovedSubmodule, number: int) -> bool:
    address = origin_of(claim.place, submodule)
    if address is None:
        raise EvidenceError(f"{cut(submodule.url, _SHOWN)} is not asked.")
    if number >= _MOST_ASKED:
        raise EvidenceError(f"of more than {_MOST_ASKED} submodules the origins are not asked.")
    remote = Remote(address.url, claim.place.env, host.forges.token(address))
    return has_commit(claim.place, remote, submodule.sha)


def _words(own_commits: list[MovedSubmodule]) -> str:
    named = "; ".join(
        f"{cut(each.path, _SHOWN)} is at commit {each.sha}, "
        + ("which its own origin does not have" if each.url else "and .gitmodules names no URL for it")
        for each in own_commits[:_MOST_ASKED]
    )
    return (
        f"Nobody else could check this work out: {named}. Septet pushes to this repository alone. Take each back "
        "to a commit that its origin has (`git submodule update PATH`, where HEAD names one), or out of the index "
        "(`git rm --cached PATH`) where it belongs to no other repository; change this repository's own files."
    )


def warn_of_edits_inside(claim: AnyClaim, *, refuses: bool) -> tuple[str, ...]:
    """Return warnings about uncommitted files inside submodules, and about the first submodule that is unreadable.

    Args:
        refuses: Whether to raise instead, because the step's agent can still revert or move the changes.

    Raises:
        EvidenceError: A submodule has a change, and the agent has to act; the message names the action.
        GitError: git could not list the submodules.
    """
    if not has_submodules(claim.place):
        return ()
    opened = find(vault_at(claim.place), claim.call.workspace.checkpoint)
    found, unknown = edits_inside(claim.place, opened.taken_at)
    named = name_some(found, 10)
    if found and refuses and claim.call.attempt == 1:
        raise EvidenceError(
            f"Inside submodules these files are changed or new, and nobody would get them: {named}. A commit of "
            "this repository holds only the commit that a submodule is at, and Septet pushes to this repository "
            "alone. Take them back there, or move what is needed into this repository's own files. What a build "
            "has left may stay."
        )
    told = (f"not part of the work, for it lies inside submodules: {named}",) if found else ()
    return (
        *told,
        *(f"whether files are changed inside a submodule was not found out: {each}" for each in unknown[:1]),
    )
