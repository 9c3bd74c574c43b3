"""The remaining work of a pipeline's issues, for the estimate of the cost."""

from datetime import UTC, datetime

import pytest

from clients.pipelines.rows import work_ahead
from septet.contracts.lanes import Lane, LaneLeft, PlanningOutcome, Role
from septet.contracts.names import Stage
from septet.contracts.order import WorkOrderInput
from septet.contracts.task_rows import first_task
from septet.costs.estimate import REST_STEPS, WHOLE, WorkAhead
from septet.pipelines.inputs import PipelineIssue
from septet.pipelines.views import IssueState, IssueStatus, PipelineRun
from workflows.pipeline.state import PipelineState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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


def test_a_pipeline_knows_the_size_of_its_plans() -> None:
    """The size of a plan comes with the work order from the planner's lane; an older version sends none, so 0."""
    issue = PipelineIssue(id="a", title="A", body="Do it.")
    state = PipelineState()
    state.begin("pl-1", PipelineRun(repository="/app", issues=(issue,)), "run", NOW)
    state.add_issues([issue])
    task = first_task("pl-1-a", WorkOrderInput(repository="/app", title="A"), Stage.TRIAGED, "")
    plan = PlanningOutcome(plan_path="specs/plan.md", planned_at="2026-01-01T00:00:00.000Z", seconds=1.0)
    lane = Lane(id="pl-1-planner", pipeline="pl-1")
    report = LaneLeft(order_id="pl-1-a", role=Role.PLANNER, lane=lane, result=plan)
    state.leave_lane(report)
    assert state.issues["a"].plan_bytes == 0
    state.leave_lane(report.model_copy(update={"task": task.model_copy(update={"plan_bytes": 700})}))
    assert work_ahead(state.issues.values()) == (PLANNED,)
