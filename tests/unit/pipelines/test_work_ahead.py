"""The remaining work of a pipeline's issues, for the estimate of the cost."""

import pytest

from clients.pipelines.rows import work_ahead
from septet.costs.estimate import REST_STEPS, WHOLE, WorkAhead
from septet.pipelines.views import IssueState, IssueStatus

PLANNED = WorkAhead(REST_STEPS, 700)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (IssueStatus.WAITING, (WHOLE,)),
        (IssueStatus.PLANNED, (PLANNED,)),
        (IssueStatus.COMPLETED, ()),
        (IssueStatus.FAILED, ()),
    ],
)
def test_an_issue_is_ahead_as_far_as_it_has_no_result(
    status: IssueStatus, expected: tuple[WorkAhead, ...]
) -> None:
    """An issue without a plan counts whole, an issue with a plan by the plan's size, and a closed issue not."""
    assert work_ahead([IssueState(issue_id="a", order_id="pl-1-a", status=status, plan_bytes=700)]) == expected
