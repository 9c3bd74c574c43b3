"""Prove steps 2 and 3 by the plan's file."""

import hashlib
from functools import partial
from typing import Final

from activities.host.claims import Claim, Proof, prove_bare
from activities.host.host import Host
from activities.outgoing.plan import read_plan_text
from activities.turns.pipeline import issue_id, pipeline_store
from septet.answers.plain import bare_values
from septet.contracts.answers import BuildPlanAnswer, FindPlanFileAnswer
from septet.contracts.solution import SolutionAnswer
from septet.errors import EvidenceError
from septet.git.evidence.evidence import is_ignored, plan_file
from septet.pipelines.solution import IssueScope, findings, findings_text, outline_of

NONE: Final = "0"
"""The answer of an agent that found no plan."""
_IGNORED: Final = "the repository ignores {}: the plan will not be on the branch, nor linked from the pull request"


def prove_find_plan_file(_: Host, claim: Claim[FindPlanFileAnswer]) -> Proof:
    """Check that the plan's file exists; after the answer `0` the workflow plans once more."""
    given = claim.answer.plan_path
    if given == NONE:
        return Proof(NONE)
    path = prove_bare(given, bare_values(given), partial(plan_file, claim.place))
    changed = any(change.path == path for change in claim.evidence.files_changed)
    warnings = (_IGNORED.format(path),) if not changed and is_ignored(claim.place, path) else ()
    content = read_plan_text(claim.place, path)
    sha256 = hashlib.sha256(content).hexdigest()
    return Proof(path, plan_sha256=sha256, plan_bytes=len(content), warnings=warnings)


def prove_build_plan(host: Host, claim: Claim[BuildPlanAnswer | SolutionAnswer]) -> Proof:
    """Check the plan: a file with content, inside the worktree, and no symlink out of the worktree.

    Raises:
        UnclearAnswerError: The path is a link whose two parts differ.
        EvidenceError: The file is no plan, is unreadable, or the solution has findings; the message names all.
    """
    given = claim.answer.plan_path
    path = prove_bare(given, bare_values(given), partial(plan_file, claim.place))
    read_plan_text(claim.place, path)
    if not isinstance(claim.answer, SolutionAnswer):
        return Proof(path)
    return _accept(host, claim, claim.answer, path)


def _accept(
    host: Host, claim: Claim[BuildPlanAnswer | SolutionAnswer], solution: SolutionAnswer, path: str
) -> Proof:
    """Check a solution, and write it to disk; the workflow keeps its outline."""
    call = claim.call
    if faults := findings(solution, IssueScope(issue_id(call), path, claim.place.worktree)):
        raise EvidenceError(findings_text(faults))
    claim.fence.lease.check()
    pipeline_store(host.state, call).keep_solution(issue_id(call), solution)
    return Proof(path, outline=outline_of(solution))
