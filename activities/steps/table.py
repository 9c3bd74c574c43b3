"""The table of all proofs, and the short proofs."""

from collections.abc import Callable, Mapping
from typing import Final

from activities.host.claims import AnyClaim, Claim, Proof
from activities.host.host import Host
from activities.outgoing.clean_texts import outgoing_for
from activities.outgoing.leaving_content import Leaving, join_findings, parts_of, suspicion
from activities.outgoing.reading import leaving_of
from activities.steps.create_commit import prove_create_commit
from activities.steps.create_pull_request import prove_create_pull_request
from activities.steps.generate_branch import prove_generate_branch
from activities.steps.implement_plan import prove_implement_plan
from activities.steps.plan import prove_build_plan, prove_find_plan_file
from activities.steps.rework import prove_rework
from septet.contracts.answers import ClassifyIssueAnswer, ReadOutgoingAnswer
from septet.contracts.facts import KeyFinding
from septet.contracts.names import READ_OUTGOING, REWORK, Step
from septet.git.engine.place import Place
from septet.git.worktree.view import view_git

_MOST: Final = 10


def prove_read_outgoing(host: Host, claim: Claim[ReadOutgoingAnswer]) -> Proof:
    """Return the reader's suspicions, and the parts that the reader has not seen, as findings.

    Raises:
        WorkspaceError: The content is no longer on this host.
        EvidenceError, GitError: The commits could not be read.
    """
    leaving, outgoing = leaving_of(claim.place, claim.call), outgoing_for(host, claim)
    found = dict[str, KeyFinding]()
    for each in claim.answer.findings:
        path, what = each.path.partition(" of commit ")[0].strip(), outgoing.line(each.what) or "without words"
        content = _content(claim.place, leaving, path)
        finding = suspicion(outgoing.without_keys(path), each.line, each.kind, what, content)
        found.setdefault(finding.id, finding)
    findings = (*parts_of(claim.place, leaving).findings, *join_findings(tuple(found.values()), _MOST))
    return Proof(claim.answer.result_text, findings=findings)


def _content(place: Place, leaving: Leaving, path: str) -> bytes:
    """Return the content at a path: a text, or git's name of the file; for any other path, the digest of all."""
    if path in leaving.texts:
        return leaving.texts[path].encode(errors="replace")
    found = view_git(place).try_run("rev-parse", "--verify", "--quiet", f"{leaving.head}:{path}")
    return found.stdout.strip() if found.exit_code == 0 else leaving.digest.encode()


def prove_classify_issue(_: Host, claim: Claim[ClassifyIssueAnswer]) -> Proof:
    """Return the agent's class: any class is right."""
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
"""Each proof checks a claim against git and the forge, and does the work that the agent has left to the engine."""
