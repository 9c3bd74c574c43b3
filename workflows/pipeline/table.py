"""The table of a pipeline's issues that Temporal's web UI shows."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineView
from septet.system.text import table_cell

_SHOWN: Final = 40
_CELL_LIMIT: Final = 60
_REASON_LIMIT: Final = 200


def format_table(view: PipelineView, issues: Sequence[IssueState], open_issues: Sequence[IssueState]) -> str:
    """Return the counts and the open issues, or the last issues if none is open, as Markdown."""
    counts = Counter(each.status for each in issues)
    summary = ", ".join(f"{counts[name]} {name.value}" for name in IssueStatus if counts[name])
    reason = f" ({table_cell(view.reason, _REASON_LIMIT)})" if view.reason else ""
    lines = [f"**{view.id}** · **{view.status.value}**{reason} · {summary or 'no issues yet'}", ""]
    lines += ["| issue | status | solution | commit | pull request |", "| --- | --- | --- | --- | --- |"]
    rows = open_issues[:_SHOWN] or issues[-_SHOWN:]
    lines += [_format_row(issue) for issue in rows]
    if len(issues) > len(rows):
        lines += ["", f"and {len(issues) - len(rows)} more: `septet pipeline show {view.id}`"]
    return "\n".join(lines)


def _format_row(issue: IssueState) -> str:
    reason = f" ({table_cell(issue.error.message, _CELL_LIMIT)})" if issue.error else ""
    solution = f"{issue.solution.id}: {table_cell(issue.solution.summary, _CELL_LIMIT)}" if issue.solution else ""
    commit = (issue.commit_hash or "")[:12]
    return f"| {issue.issue_id} | {issue.status.value}{reason} | {solution} | {commit} | {issue.pr_url or ''} |"
