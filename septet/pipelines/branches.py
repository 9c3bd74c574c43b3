"""On which branch that of an issue stands, and what that one holds."""

from collections.abc import Mapping

from septet.contracts.pipeline_view import IssueState


def held_by(issue: IssueState, issues: Mapping[str, IssueState]) -> frozenset[str]:
    """Return the issues whose work a branch holds: its own, and those that it was built on, one upon another."""
    chain = [issue.issue_id]
    while (below := issues[chain[-1]].builds_on) and below not in chain:
        chain.append(below)
    return frozenset(chain)


def below_of(issue: IssueState, issues: Mapping[str, IssueState]) -> IssueState | None:
    """Return what an issue is to be built on, of those that it depends on and that are done.

    That is the one whose branch holds most of them; of equal ones that which was done last.
    """
    candidates = [issues[name] for name in issue.depends_on if issues[name].done_at]
    needs = frozenset(issue.depends_on)
    return max(
        candidates, key=lambda each: (len(held_by(each, issues) & needs), each.executed_at or ""), default=None
    )
