"""A reader's answer is proved by what it was given: each finding is for what stands at its path in the commits."""

from typing import Final

from activities.host.claims import Claim, Proof
from activities.host.host import Host
from activities.outgoing.leaving import Leaving, join_findings, parts_of, suspicion
from activities.outgoing.outgoing import outgoing_for
from activities.outgoing.reading import leaving_of
from septet.contracts.answers import ReadOutgoingAnswer
from septet.contracts.facts import KeyFinding
from septet.git.engine.place import Place
from septet.git.worktree.view import view_git

_MOST: Final = 10


def prove_read_outgoing(host: Host, claim: Claim[ReadOutgoingAnswer]) -> Proof:
    """Return what the reader suspects, and what was not shown to the reader, as findings.

    Raises:
        WorkspaceError: What was read is not on this host any more.
        EvidenceError, GitError: The commits could not be looked through.
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
    """Return what stands at a path: a text's words, or git's name of the file; else a name of all that leaves."""
    if path in leaving.texts:
        return leaving.texts[path].encode(errors="replace")
    found = view_git(place).try_run("rev-parse", "--verify", "--quiet", f"{leaving.head}:{path}")
    return found.stdout.strip() if found.exit_code == 0 else leaving.digest.encode()
