"""Where people read the plan: in a file of the branch, in the pull request's text, or not there at all."""

import os
from typing import Final

from activities.host.claims import AnyClaim
from activities.outgoing.plan_text import read_plan_text
from activities.turns.prepared_steps import PreparedStep
from septet.errors import EvidenceError
from septet.git.engine.engine import Git
from septet.git.evidence.evidence import is_in_commit, plan_file
from septet.git.evidence.setup_changes import exclude_files
from septet.outgoing.text import Outgoing

_REASON: Final = "The plan, which this repository keeps out of commits"
_LONGEST: Final = 30_000
"""Characters of a plan in a pull request's text, half of what a forge takes."""


def exclude_plan(prepared_step: PreparedStep) -> None:
    """Have git pass over the plan's file from here on.

    A file that the base has is the repository's own, and stays in its commits.

    Raises:
        WorkspaceError: `.git` is damaged.
        WorkspaceBusyError: An agent works in the worktree.
    """
    path = prepared_step.call.progress.plan_path
    if path:
        with prepared_step.fence.lease.hold():
            exclude_files(prepared_step.place, (os.fsencode(path),), _REASON)


def refuse_plan(claim: AnyClaim, staged: Git | None, head: str) -> None:
    """See that the plan is not in what leaves, where the repository keeps plans out of commits.

    Raises:
        EvidenceError: The agent has committed or staged the plan's file.
        GitError: git could not read what is staged.
    """
    plan = claim.call.progress.plan_path
    if not plan or claim.repository_settings.pull_request.plan == "commit":
        return
    tree = staged.text("write-tree") if staged is not None else head
    if is_in_commit(claim.place, tree, plan) and not is_in_commit(claim.place, claim.began_at, plan):
        raise EvidenceError(
            f"{plan} is in the commits, and this repository keeps plans out of them: take the file out of each "
            "commit and of the index, and leave the file itself where it is."
        )


def plan_paragraph(claim: AnyClaim, outgoing: Outgoing) -> str:
    """Return the plan as a part of the pull request's text, folded; nothing where the text is to have none."""
    plan = claim.call.progress.plan_path
    if not plan or claim.repository_settings.pull_request.plan != "body":
        return ""
    try:
        text = read_plan_text(claim.place, plan_file(claim.place, plan)).decode()
    except EvidenceError as error:
        return f"The plan could not be read: {outgoing.line(str(error))}"
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n\n[cut here]"
    return f"<details><summary>The plan</summary>\n\n{outgoing.markdown(shown).strip()}\n\n</details>"
