"""What a pipeline has come to so far: the entries of both documents of results."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from septet.contracts.pipeline_results import ExecutionResult, ExecutionResults, PlanningResult, PlanningResults
from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineView

Solution = dict[str, object]
Ended = Literal["completed", "failed", "cancelled", "skipped"]

_ENDED: Final[Mapping[IssueStatus, Ended]] = {
    IssueStatus.COMPLETED: "completed",
    IssueStatus.FAILED: "failed",
    IssueStatus.CANCELLED: "cancelled",
    IssueStatus.SKIPPED: "skipped",
}
_NOT_PLANNED: Final = frozenset({IssueStatus.WAITING, IssueStatus.PLANNING})


def solution_in(state: IssueState) -> Solution | None:
    """Return an issue's solution as far as the pipeline remembers it."""
    return state.solution.model_dump(mode="json") if state.solution is not None else None


def files_in(state: IssueState) -> tuple[str, ...]:
    """Return an issue's changed files as far as the pipeline remembers them."""
    return tuple(change.path for change in state.files_modified)


def planning_results(
    view: PipelineView, solution_of: Callable[[IssueState], Solution | None] = solution_in
) -> PlanningResults:
    """Return `planning-results.json`: an entry for each issue whose planning is over, in the pipeline's order."""
    results = tuple(_planning_result(state, solution_of) for state in view.issues if _is_past_planning(state))
    return PlanningResults(created_at=view.created_at, results=results)


def execution_results(
    view: PipelineView, files_of: Callable[[IssueState], tuple[str, ...]] = files_in
) -> ExecutionResults:
    """Return `execution-results.json`: an entry for each planned issue that is over, in the pipeline's order."""
    results = tuple(
        ExecutionResult(
            issue_id=state.issue_id,
            solution_id=state.solution.id if state.solution is not None else None,
            status=_ENDED[state.status],
            commit_hash=state.commit_hash,
            files_modified=files_of(state),
            executed_at=state.executed_at,
        )
        for state in view.issues
        if state.status in _ENDED and state.planned_at is not None
    )
    return ExecutionResults(created_at=view.created_at, results=results)


def _is_past_planning(state: IssueState) -> bool:
    return state.status not in _NOT_PLANNED


def _planning_result(state: IssueState, solution_of: Callable[[IssueState], Solution | None]) -> PlanningResult:
    if state.planned_at is None:
        has_failed = state.status is IssueStatus.FAILED
        return PlanningResult(issue_id=state.issue_id, status="failed" if has_failed else "skipped")
    return PlanningResult(
        issue_id=state.issue_id,
        solution_id=state.solution.id if state.solution is not None else None,
        status="completed",
        solution=solution_of(state),
        planned_at=state.planned_at,
    )
