"""Step 2 is proved by the plan's file; inside a pipeline, by the solution's judgement as well."""

from functools import partial

from activities.host.claims import Claim, Proof, prove_bare
from activities.host.host import Host
from activities.outgoing.plan_text import read_plan_text
from activities.turns.pipeline import issue_id, pipeline_store
from septet.answers.plain import bare_values
from septet.contracts.answers import BuildPlanAnswer
from septet.contracts.solution import SolutionAnswer
from septet.errors import EvidenceError
from septet.git.evidence.evidence import plan_file
from septet.pipelines.solution import IssueScope, findings, findings_text, outline_of


def prove_build_plan(host: Host, claim: Claim[BuildPlanAnswer | SolutionAnswer]) -> Proof:
    """Look at the plan: a file with something in it, inside the worktree, and no symlink out of it.

    Raises:
        UnclearAnswerError: The path is a link whose two parts differ.
        EvidenceError: It is not, nobody can read all of it, or the solution has findings: all of them.
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
    """Judge a solution, and keep it whole on disk; the workflow remembers its outline."""
    call = claim.call
    if faults := findings(solution, IssueScope(issue_id(call), path, claim.place.worktree)):
        raise EvidenceError(findings_text(faults))
    claim.fence.lease.check()
    pipeline_store(host.state, call).keep_solution(issue_id(call), solution)
    return Proof(path, outline=outline_of(solution))
