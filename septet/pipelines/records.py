"""What is written down of a pipeline: both documents of results as it goes, and the report at its end.

Each document is put in the place of the one before it, whole and durable: whatever dies, there is always one, and
what it says is so.
"""

from typing import Final

from pydantic_core import to_json

from septet.contracts.pipeline_results import ExecutionResults, PlanningResults
from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineView
from septet.contracts.wire import Wire
from septet.pipelines.report import as_markdown, report_of
from septet.pipelines.results import Solution, execution_results, listed, outlined, planning_results
from septet.pipelines.store import PipelineStore
from septet.system.durable import write_durably
from septet.system.locks import locked

PLANNING: Final = "planning-results.json"
EXECUTION: Final = "execution-results.json"
REPORT: Final = "report.json"
REPORT_TEXT: Final = "report.md"
_LOCK: Final = ".lock"


def note(shelf: PipelineStore, some: PipelineView) -> PipelineView:
    """Write down how some issues stand, and both documents; return the pipeline with all issues noted here.

    Args:
        shelf: The pipeline's folder.
        some: The pipeline, with at least those issues that have changed since the last time.

    Raises:
        OSError: The disk did not take it.
    """
    with locked(shelf.folder / _LOCK):
        return _noted(shelf, some)


def report(shelf: PipelineStore, view: PipelineView) -> None:
    """Write down how the given issues stand, as `note`, and the report of all.

    Raises:
        OSError: The disk did not take it.
    """
    with locked(shelf.folder / _LOCK):
        made = report_of(_noted(shelf, view))
        _put(shelf, REPORT, made)
        write_durably(shelf.folder / REPORT_TEXT, as_markdown(made).encode(errors="replace"))


def documents(shelf: PipelineStore, view: PipelineView) -> tuple[PlanningResults, ExecutionResults]:
    """Return both documents of results, with whole solutions and lists of files where they lie on this disk."""
    planning = planning_results(view, lambda state: _solution(shelf, state))
    return planning, execution_results(view, lambda state: _files(shelf, state))


def _noted(shelf: PipelineStore, some: PipelineView) -> PipelineView:
    for state in some.issues:
        shelf.keep_state(state)
    whole = some.model_copy(update={"issues": shelf.states()})
    planning, execution = documents(shelf, whole)
    _put(shelf, PLANNING, planning)
    _put(shelf, EXECUTION, execution)
    return whole


def _put(shelf: PipelineStore, name: str, document: Wire) -> None:
    write_durably(shelf.folder / name, to_json(document, indent=2))


def _solution(shelf: PipelineStore, state: IssueState) -> Solution | None:
    """Return an issue's solution as it lies on disk; its outline, where this host has another one or none."""
    solution = shelf.solution_json(state.issue_id)
    same = solution is not None and (state.solution is None or solution.get("id") == state.solution.id)
    return solution if same else outlined(state)


def _files(shelf: PipelineStore, state: IssueState) -> tuple[str, ...]:
    """Return all files that an issue has changed, where this host knows them; else the first ones."""
    record = shelf.execution(state.issue_id) if state.status is IssueStatus.COMPLETED else None
    return record.files_modified if record is not None else listed(state)
