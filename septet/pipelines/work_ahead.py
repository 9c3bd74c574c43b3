"""What is still to come of a pipeline, for the estimate of its cost."""

from collections.abc import Iterable
from typing import Final

from septet.contracts.pipeline_view import IssueState, IssueStatus
from septet.costs.estimate import REST_STEPS, WHOLE, WorkAhead
from septet.pipelines.schedule import CLOSED

_PLANNED: Final = frozenset({IssueStatus.PLANNED, IssueStatus.EXECUTING})


def work_ahead(issues: Iterable[IssueState]) -> tuple[WorkAhead, ...]:
    """Return what is still to come of each issue that has no result: all, or what follows its plan.

    What an agent is at counts as if it had only begun.
    """
    return tuple(
        WorkAhead(REST_STEPS, issue.plan_bytes) if issue.status in _PLANNED else WHOLE
        for issue in issues
        if issue.status not in CLOSED
    )
