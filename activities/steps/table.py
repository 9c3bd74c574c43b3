"""The table of all proofs, which are functions that check a step's answer; short proofs are here too."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from activities.host.claims import AnyClaim, Claim, Proof, prove_bare
from activities.host.host import Host
from activities.outgoing.clean_texts import outgoing_for
from activities.outgoing.leaving_content import Leaving, join_findings, leaving_of, parts_of, suspicion
from activities.outgoing.plan import read_plan_text
from activities.steps.create_commit import prove_create_commit
from activities.steps.create_pull_request import prove_create_pull_request
from activities.steps.generate_branch import prove_generate_branch
from activities.steps.implement_plan import prove_implement_plan
from activities.steps.rework import prove_rework
from septet.answers.plain import bare_values
from septet.contracts.answers import BuildPlanAnswer, ClassifyIssueAnswer, FindPlanFileAnswer, ReadOutgoingAnswer
from septet.contracts.facts import KeyFinding
from septet.contracts.names import READ_OUTGOING, REWORK, Step
from septet.contracts.solution import SolutionAnswer
from septet.errors import EvidenceError
from septet.git.engine.place import Place
from septet.git.evidence.evidence import is_ignored
from septet.git.workspace.plan import plan_file
from septet.git.worktree.view import view_git
from septet.pipelines.solution import IssueScope, findings, findings_text, outline_of
from septet.pipelines.store import issue_of, store_of

NONE: Final = "0"
_IGNORED: Final = "the repository ignores {}: the plan will not be on the branch, nor linked from the pull request"


def prove_find_plan_file(_: Host, claim: Claim[FindPlanFileAnswer]) -> Proof:
    """Check that the plan's file exists; after the answer `0` (there is no plan), planning is repeated once."""
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
    """Check that the plan is a file with content inside the worktree.

    Raises:
        UnclearAnswerError: The path is a Markdown link whose text and target differ.
        EvidenceError: The file is no plan or unreadable, or the solution has faults, which the message names.
    """
    given = claim.answer.plan_path
    path = prove_bare(given, bare_values(given), partial(plan_file, claim.place))
    read_plan_text(claim.place, path)
    solution, call = claim.answer, claim.call
    if not isinstance(solution, SolutionAnswer):
        return Proof(path)
    issue_id = issue_of(call.pipeline, call.workspace.work_order_id)
    if faults := findings(solution, IssueScope(issue_id, path, claim.place.worktree)):
        raise EvidenceError(findings_text(faults))
    claim.fence.lease.check()
    store_of(host.state, call.pipeline).keep_solution(issue_id, solution)
    return Proof(path, outline=outline_of(solution))


def prove_read_outgoing(host: Host, claim: Claim[ReadOutgoingAnswer]) -> Proof:
    """Return findings: the reader's suspicions, and the parts that did not fit in the reader's prompt.

    Raises:
        WorkspaceError: What the reader has read is no longer on this host.
        EvidenceError, GitError: The commits could not be read.
    """
    leaving, outgoing = leaving_of(claim.place, claim.call), outgoing_for(host, claim)
    found = dict[str, KeyFinding]()
    for each in claim.answer.findings:
        path, what = each.path.partition(" of commit ")[0].strip(), outgoing.line(each.what) or "without words"
        content = _content(claim.place, leaving, path)
        finding = suspicion(outgoing.without_keys(path), each.line, each.kind, what, content)
        found.setdefault(finding.id, finding)
    findings = (*parts_of(claim.place, leaving).findings, *join_findings(tuple(found.values()), 10))
    return Proof(claim.answer.result_text, findings=findings)


def _content(place: Place, leaving: Leaving, path: str) -> bytes:
    """Return the outgoing text named `path`, else git's hash of the file `path`, else a digest of all content."""
    if path in leaving.texts:
        return leaving.texts[path].encode(errors="replace")
    found = view_git(place).try_run("rev-parse", "--verify", "--quiet", f"{leaving.head}:{path}")
    return found.stdout.strip() if found.exit_code == 0 else leaving.digest.encode()


def prove_classify_issue(_: Host, claim: Claim[ClassifyIssueAnswer]) -> Proof:
    """Accept the agent's class of the issue; every class in the contract is valid."""
    return Proof(claim.answer.issue_class)


PROOFS: Final[Mapping[str, Callable[[Host, AnyClaim], Proof]]] = {
    Step.CLASSIFY_ISSUE: prove_classify_issue,
    Step.BUILD_PLAN: prove_build_plan,
    Step.FIND_PLAN_FILE: prove_find_plan_file,
    Step.GENERATE_BRANCH: prove_generate_branch,
    Step.IMPLEMENT_PLAN: prove_implement_plan,
    Step.CREATE_COMMIT: prove_create_commit,
    Step.CREATE_PULL_REQUEST: prove_create_pull_request,
    REWORK: prove_rework,
    READ_OUTGOING: prove_read_outgoing,
}
"""The proof of each step. A proof checks a claim by git and the forge, and does Septet's part of the step."""
