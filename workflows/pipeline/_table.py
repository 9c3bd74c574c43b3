"""The table of a pipeline's issues that Temporal's web UI shows."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineStatus
from septet.system.text import table_cell

_SHOWN: Final = 40
_CELL_LIMIT: Final = 60


def table(
    pipeline_id: str, status: PipelineStatus, issues: Sequence[IssueState], still: Sequence[IssueState]
) -> str:
    """Return the issues that are open still, or the last ones where none is, as Markdown below the counts."""
    counts = Counter(each.status for each in issues)
    told = ", ".join(f"{counts[name]} {name.value}" for name in IssueStatus if counts[name])
    lines = [f"**{pipeline_id}** · **{status.value}** · {told or 'no issues yet'}", ""]
    lines += ["| issue | status | solution | commit | pull request |", "| --- | --- | --- | --- | --- |"]
    shown = still[:_SHOWN] or issues[-_SHOWN:]
    lines += [_row(issue) for issue in shown]
    if len(issues) > len(shown):
        lines += ["", f"and {len(issues) - len(shown)} more: `septet pipeline show {pipeline_id}`"]
    return "\n".join(lines)


def _row(issue: IssueState) -> str:
    reason = f" ({table_cell(issue.error.message, _CELL_LIMIT)})" if issue.error else ""
    solution = f"{issue.solution.id}: {table_cell(issue.solution.summary, _CELL_LIMIT)}" if issue.solution else ""
    commit = (issue.commit_hash or "")[:12]
    return f"| {issue.issue_id} | {issue.status.value}{reason} | {solution} | {commit} | {issue.pr_url or ''} |"
