"""Where people find the plan: in a file of the branch, in the pull request's text, or in neither."""

import os
from itertools import islice
from typing import Final

from activities.host.claims import AnyClaim
from septet.agents.runs.lease import Lease
from septet.errors import EvidenceError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import is_in_commit
from septet.git.evidence.setup_changes import exclude_files
from septet.git.workspace.plan import plan_file
from septet.outgoing.text import Outgoing
from septet.system.text import find_invisible

_LIMIT_BYTES: Final = 1024 * 1024
"""The most bytes of a plan that `septet plan` shows."""
_LONGEST: Final = 30_000
"""The most characters of a plan in a pull request's text: half of a forge's limit."""


def read_plan_text(place: Place, path: str) -> bytes:
    """Return a plan's bytes; raise if people could not read the plan.

    Args:
        path: The plan's path, proven to be a file inside the worktree.

    Raises:
        EvidenceError: The plan is too long, is not UTF-8, or has invisible characters, which the message names.
    """
    if any(find_invisible(path)):
        raise EvidenceError(f"{path!r} has invisible characters in its name: give the plan's file another one.")
    with (place.worktree / path).open("rb") as file:
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise EvidenceError(f"{path!r} is over 1 MiB, and nobody can read all of it: write a shorter plan.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise EvidenceError(f"{path!r} is not UTF-8 at byte {error.start}: write it as UTF-8 text.") from error
    found = ((line, column, f"U+{ord(each):04X}") for line, column, each in find_invisible(text))
    if places := [f"line {line}, column {column}: {point}" for line, column, point in islice(found, 5)]:
        raise EvidenceError(
            f"{path!r} has invisible characters, which nobody sees who approves it: {'; '.join(places)}. Remove "
            "them from the file, or write the code point as text, such as U+200B."
        )
    return content


def exclude_plan(place: Place, lease: Lease, path: str) -> None:
    """Make git ignore the plan's file, unless the file is in the base.

    Raises:
        WorkspaceError: `.git` is damaged.
        WorkspaceBusyError: An agent works in the worktree.
    """
    with lease.hold():
        exclude_files(place, (os.fsencode(path),), "The plan, which this repository keeps out of commits")


def refuse_plan(claim: AnyClaim, tree: str) -> None:
    """Raise if outgoing commits contain the plan although the repository's settings forbid it.

    Raises:
        EvidenceError: The agent has committed or staged the plan's file.
        GitError: git could not read the tree.
    """
    plan = claim.call.progress.plan_path
    if not plan or claim.repository_settings.pull_request.plan == "commit":
        return
    if is_in_commit(claim.place, tree, plan) and not is_in_commit(claim.place, claim.began_at, plan):
        raise EvidenceError(
            f"{plan} is in the commits, and this repository keeps plans out of them: take the file out of each "
            "commit and of the index, and leave the file itself where it is."
        )


def plan_paragraph(claim: AnyClaim, outgoing: Outgoing) -> str:
    """Return the plan as a folded paragraph for the pull request; empty if settings do not want it there."""
    plan = claim.call.progress.plan_path
    if not plan or claim.repository_settings.pull_request.plan != "body":
        return ""
    try:
        text = read_plan_text(claim.place, plan_file(claim.place, plan)).decode()
    except EvidenceError as error:
        return f"The plan could not be read: {outgoing.line(str(error))}"
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n\n[cut here]"
    return f"<details><summary>The plan</summary>\n\n{outgoing.markdown(shown).strip()}\n\n</details>"
