"""Write the documents of a pipeline to disk: both documents of results, and at the end the report.

Each document replaces the previous document, whole and durable: after any crash the disk has a valid document.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from pydantic_core import to_json

from septet.contracts.pipeline_view import (
    ExecutionResult,
    ExecutionResults,
    IssueState,
    IssueStatus,
    PipelineView,
    PlanningResult,
    PlanningResults,
)
from septet.contracts.wire import Wire
from septet.pipelines.report import as_markdown, report_of
from septet.pipelines.store import PipelineStore
from septet.system.durable import write_durably
from septet.system.locks import hold_lock

Solution = dict[str, object]
Ended = Literal["completed", "failed", "cancelled", "skipped"]

_ENDED: Final[Mapping[IssueStatus, Ended]] = {
    IssueStatus.COMPLETED: "completed",
    IssueStatus.FAILED: "failed",
    IssueStatus.CANCELLED: "cancelled",
    IssueStatus.SKIPPED: "skipped",
}


def solution_in(state: IssueState) -> Solution | None:
    """Return the part of an issue's solution that the pipeline's state contains."""
    return state.solution.model_dump(mode="json") if state.solution is not None else None


def files_in(state: IssueState) -> tuple[str, ...]:
    """Return those of an issue's changed files that the pipeline's state contains."""
    return tuple(change.path for change in state.files_modified)


def planning_results(
    view: PipelineView, solution_of: Callable[[IssueState], Solution | None] = solution_in
) -> PlanningResults:
    """Return the content of `planning-results.json`: all issues after their planning, in order."""
    states = (state for state in view.issues if state.status not in {IssueStatus.WAITING, IssueStatus.PLANNING})
    results = tuple(_planning_result(state, solution_of) for state in states)
    return PlanningResults(created_at=view.created_at, results=results)


def execution_results(
    view: PipelineView, files_of: Callable[[IssueState], tuple[str, ...]] = files_in
) -> ExecutionResults:
    """Return the content of `execution-results.json`: all planned issues that are over, in order."""
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


PLANNING: Final = "planning-results.json"
EXECUTION: Final = "execution-results.json"
REPORT: Final = "report.json"
REPORT_TEXT: Final = "report.md"
_LOCK: Final = ".lock"


def note(store: PipelineStore, some: PipelineView) -> PipelineView:
    """Write the states of some issues and both documents; return the pipeline with all issues on this disk.

    `some` has at least the issues that changed since the last call.


    Raises:
        OSError: The disk refused.
    """
    with hold_lock(store.folder / _LOCK):
        return _write_states(store, some)


def report(store: PipelineStore, view: PipelineView) -> None:
    """Write the states of the given issues and both documents, as `note` does, and then the report on all issues.

    Raises:
        OSError: The disk refused.
    """
    with hold_lock(store.folder / _LOCK):
        document = report_of(_write_states(store, view))
        _write_document(store, REPORT, document)
        write_durably(store.folder / REPORT_TEXT, as_markdown(document).encode(errors="replace"))


def documents(store: PipelineStore, view: PipelineView) -> tuple[PlanningResults, ExecutionResults]:
    """Return both documents of results, with whole solutions and lists of files if this disk has them."""
    planning = planning_results(view, lambda state: _solution(store, state))
    return planning, execution_results(view, lambda state: _files(store, state))


def _write_states(store: PipelineStore, some: PipelineView) -> PipelineView:
    for state in some.issues:
        store.keep_state(state)
    whole = some.model_copy(update={"issues": store.states()})
    planning, execution = documents(store, whole)
    _write_document(store, PLANNING, planning)
    _write_document(store, EXECUTION, execution)
    return whole


def _write_document(store: PipelineStore, name: str, document: Wire) -> None:
    write_durably(store.folder / name, to_json(document, indent=2))


def _solution(store: PipelineStore, state: IssueState) -> Solution | None:
    """Return an issue's solution from disk; the outline if this host lacks the solution."""
    solution = store.solution_json(state.issue_id)
    same = solution is not None and (state.solution is None or solution.get("id") == state.solution.id)
    return solution if same else solution_in(state)


def _files(store: PipelineStore, state: IssueState) -> tuple[str, ...]:
    """Return all files that an issue changed if this host has the list, or else the first files."""
    record = store.execution(state.issue_id) if state.status is IssueStatus.COMPLETED else None
    return record.files_modified if record is not None else files_in(state)
