"""The remaining work of a pipeline, for the estimate of its cost."""

from collections.abc import Iterable
from typing import Final

from septet.contracts.pipeline_view import IssueState, IssueStatus
from septet.costs.estimate import REST_STEPS, WHOLE, WorkAhead
from septet.pipelines.schedule import CLOSED

_PLANNED: Final = frozenset({IssueStatus.PLANNED, IssueStatus.EXECUTING})


def work_ahead(issues: Iterable[IssueState]) -> tuple[WorkAhead, ...]:
    """Return the remaining work of each issue without a result: all steps, or the steps after its plan."""
    return tuple(
        WorkAhead(REST_STEPS, issue.plan_bytes) if issue.status in _PLANNED else WHOLE
        for issue in issues
        if issue.status not in CLOSED
    )
