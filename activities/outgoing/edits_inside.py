"""Edits inside submodules, which no pull request holds: the agent corrects them once, then people are warned."""

from typing import Final

from activities.host.claims import AnyClaim
from septet.errors import EvidenceError
from septet.git.evidence.edits_inside import edits_inside
from septet.git.vault.vault import find, vault_at
from septet.system.text import name_some

_NAMED: Final = 10


def tell_edits_inside(claim: AnyClaim, *, asks: bool) -> tuple[str, ...]:
    """Return a warning about files that are changed inside submodules and are in no commit.

    Args:
        claim: The step's claim.
        asks: Whether the step's agent can revert or move such changes; if so, its first try has to.

    Raises:
        EvidenceError: There is such a change, and the agent has to act; the message names what it has to do.
        GitError: git could not read the submodules.
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
