"""Edits inside submodules, which no pull request holds: an agent is asked once, then people are told."""

from typing import Final

from activities.host.claims import AnyClaim
from septet.errors import EvidenceError
from septet.git.evidence.edits_inside import edits_inside
from septet.git.vault.vault import find, vault_at
from septet.system.text import name_some

_NAMED: Final = 10


def tell_edits_inside(claim: AnyClaim, *, asks: bool) -> tuple[str, ...]:
    """Return, as a warning, what is changed inside submodules and in no commit.

    Args:
        claim: What the step says.
        asks: Whether its agent can take it back or bring it elsewhere: in its first try it is asked to.

    Raises:
        EvidenceError: There is such a change, and the agent is asked; the message says what it is to do.
        GitError: git could not tell.
    """
    opened = find(vault_at(claim.place), claim.call.workspace.checkpoint)
    found, unknown = edits_inside(claim.place, opened.taken_at)
    named = name_some(found, _NAMED)
    if found and asks and claim.call.attempt == 1:
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
