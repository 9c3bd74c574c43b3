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
from septet.pipelines.results import Solution, execution_results, files_in, planning_results, solution_in
from septet.pipelines.store import PipelineStore
from septet.system.durable import write_durably
from septet.system.locks import hold_lock

PLANNING: Final = "planning-results.json"
EXECUTION: Final = "execution-results.json"
REPORT: Final = "report.json"
REPORT_TEXT: Final = "report.md"
_LOCK: Final = ".lock"


def note(store: PipelineStore, some: PipelineView) -> PipelineView:
    """Write down how some issues stand, and both documents; return the pipeline with all issues noted here.

    Args:
        store: The pipeline's folder.
        some: The pipeline, with at least those issues that have changed since the last time.

    Raises:
        OSError: The disk did not take it.
    """
    with hold_lock(store.folder / _LOCK):
        return _write_states(store, some)


def report(store: PipelineStore, view: PipelineView) -> None:
    """Write down how the given issues stand, as `note`, and the report of all.

    Raises:
        OSError: The disk did not take it.
    """
    with hold_lock(store.folder / _LOCK):
        document = report_of(_write_states(store, view))
        _write_document(store, REPORT, document)
        write_durably(store.folder / REPORT_TEXT, as_markdown(document).encode(errors="replace"))


def documents(store: PipelineStore, view: PipelineView) -> tuple[PlanningResults, ExecutionResults]:
    """Return both documents of results, with whole solutions and lists of files where they lie on this disk."""
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
    """Return an issue's solution as it lies on disk; its outline, where this host has another one or none."""
    solution = store.solution_json(state.issue_id)
    same = solution is not None and (state.solution is None or solution.get("id") == state.solution.id)
    return solution if same else solution_in(state)


def _files(store: PipelineStore, state: IssueState) -> tuple[str, ...]:
    """Return all files that an issue has changed, where this host knows them; else the first ones."""
    record = store.execution(state.issue_id) if state.status is IssueStatus.COMPLETED else None
    return record.files_modified if record is not None else files_in(state)
