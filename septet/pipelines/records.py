"""Write a pipeline's documents to disk: the results of planning and execution, and at its end the report.

Each document is replaced in one durable step, so the disk has a whole document after any crash.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from pydantic_core import to_json

from septet.contracts.amounts import cost_text
from septet.contracts.facts import Usage
from septet.contracts.wire import Wire
from septet.pipelines.store import PipelineStore
from septet.pipelines.views import (
    ExecutionResult,
    ExecutionResults,
    IssueState,
    IssueStatus,
    PipelineReport,
    PipelineView,
    PlanningResult,
    PlanningResults,
)
from septet.system.durable import hold_lock, write_durably
from septet.system.text import cut, one_line

_REASON_LIMIT: Final = 1500
"""The most characters of a reason: enough for a remedy at its end."""
_CONTEXTS: Final = {"shared": "shared: the sessions knew of earlier issues", "fresh": "fresh: its own sessions"}
_SESSIONS: Final = {
    "shared": "continued from earlier issues",
    "fresh": "knew nothing of earlier issues",
    "summarised": "began with a summary of earlier issues",
}


def report_of(view: PipelineView) -> PipelineReport:
    """Return the report of a pipeline with all of its issues."""
    usage = Usage()
    for issue in view.issues:
        usage = usage.plus(issue.usage)
    return PipelineReport(
        pipeline=view,
        counts=dict(Counter(issue.status.value for issue in view.issues)),
        usage=usage,
        planning_seconds=round(sum(issue.planning_seconds or 0.0 for issue in view.issues), 3),
        execution_seconds=round(sum(issue.execution_seconds or 0.0 for issue in view.issues), 3),
    )


def as_markdown(report: PipelineReport) -> str:
    """Return the report as Markdown; a stranger's text stays on one line, and cannot act as markup."""
    view = report.pipeline
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.items()) or "none"
    lines = [
        f"# Pipeline {view.id}",
        "",
        f"- Repository: {_cell(view.repository)}",
        f"- Status: {view.status.value}{f' ({_cell(view.reason, _REASON_LIMIT)})' if view.reason else ''}",
        f"- From {view.created_at} to {view.closed_at or 'now'}",
        f"- Issues: {len(view.issues)} ({counts})",
        f"- Planning: {_seconds(report.planning_seconds)}; execution: {_seconds(report.execution_seconds)}",
        f"- Used: {_usage(report.usage)}",
        f"- Context: {'each issue had new sessions' if view.fresh else 'sessions continued from issue to issue'}",
    ]
    if view.error is not None:
        lines.append(f"- Failed: {_cell(f'{view.error.message} {view.error.remedy}', _REASON_LIMIT)}")
    lines += ["", "| issue | status | solution | commit | pull request | seconds | cost |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
    lines += [_row(issue) for issue in view.issues]
    for issue in view.issues:
        lines += ["", f"## {issue.issue_id}: {_cell(issue.title) or '(no title)'}", "", *_details(issue)]
    return "\n".join(lines) + "\n"


def _row(issue: IssueState) -> str:
    times = [each for each in (issue.planning_seconds, issue.execution_seconds) if each is not None]
    cells = (
        issue.issue_id,
        issue.status.value,
        issue.solution.id if issue.solution else "",
        (issue.commit_hash or "")[:12],
        _cell(issue.pr_url or ""),
        f"{sum(times):.1f}" if times else "",
        cost_text(issue.usage),
    )
    return f"| {' | '.join(cells)} |"


def _details(issue: IssueState) -> Iterator[str]:
    yield f"- Status: {issue.status.value} (work order {issue.order_id})"
    yield from _plan_lines(issue)
    facts = (
        ("Plan", issue.plan_path),
        ("Branch", issue.branch_name),
        ("Commit", issue.commit_hash),
        ("Pull request", issue.pr_url),
        ("Files", _file_list(issue)),
    )
    yield from (f"- {name}: {value if name == 'Files' else _cell(value)}" for name, value in facts if value)
    planning = "running" if issue.status is IssueStatus.PLANNING else _seconds(issue.planning_seconds)
    execution = "running" if issue.status is IssueStatus.EXECUTING else _seconds(issue.execution_seconds)
    yield f"- Planning: {planning}; execution: {execution}"
    yield f"- Used: {_usage(issue.usage)}"
    yield f"- Context: {_CONTEXTS[issue.context]}"
    for session in issue.sessions:
        yield f"- Session of the {session.role.value}: {_cell(session.session_id)} ({_SESSIONS[session.context]})"
    yield from _troubles(issue)


def _plan_lines(issue: IssueState) -> Iterator[str]:
    if issue.solution is not None:
        tasks = ", ".join(f"{task_id} {_cell(title)}" for task_id, title in issue.solution.tasks)
        yield f"- Solution: {issue.solution.id}: {_cell(issue.solution.summary)}"
        yield f"- Tasks: {tasks or 'on disk'}"
    if issue.depends_on:
        yield f"- Depends on: {', '.join(issue.depends_on)}"
    if issue.builds_on:
        yield f"- Its branch builds on that of: {issue.builds_on}"
    if issue.lacks:
        yield f"- Its branch does not hold the work of: {', '.join(issue.lacks)}: merge that first"


def _troubles(issue: IssueState) -> Iterator[str]:
    if issue.overlaps:
        yield f"- Changed the same files at the same time as: {', '.join(issue.overlaps)}"
    if issue.error is not None:
        yield f"- Why: {_cell(f'{issue.error.message} {issue.error.remedy}', _REASON_LIMIT)}"
    if issue.rescue is not None:
        snapshot = issue.rescue.snapshot
        yield f"- Rescue: {snapshot} (`septet rescue restore {snapshot} --to DIR`): {_cell(issue.rescue.reason)}"


def _file_list(issue: IssueState) -> str:
    files = [f"{_cell(change.path)} ({change.operation})" for change in issue.files_modified[:20]]
    count = max(issue.files_modified_count, len(issue.files_modified))
    return ", ".join(files) + (f" and {count - len(files)} more" if count > len(files) else "")


def _usage(usage: Usage) -> str:
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    guessed = ", estimated" if usage.estimated else ""
    return f"{read} tokens read, {usage.output_tokens} written{guessed}; {cost_text(usage) or 'cost unknown'}"


def _seconds(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:.1f} s"


def _cell(text: str, limit: int = 120) -> str:
    """Return a stranger's text on one line, in which Markdown has no effect."""
    line = cut(one_line(text), limit)
    return "".join(f"\\{each}" if each in "\\`*[]<>|#!&" else each for each in line)


Solution = dict[str, object]
Ended = Literal["completed", "failed", "cancelled", "skipped"]

_ENDED: Final[Mapping[IssueStatus, Ended]] = {
    IssueStatus.COMPLETED: "completed",
    IssueStatus.FAILED: "failed",
    IssueStatus.CANCELLED: "cancelled",
    IssueStatus.SKIPPED: "skipped",
}


def solution_in(state: IssueState) -> Solution | None:
    """Return the part of an issue's solution that the pipeline remembers; `None` without a solution."""
    return state.solution.model_dump(mode="json") if state.solution is not None else None


def files_in(state: IssueState) -> tuple[str, ...]:
    """Return those of an issue's changed files that the pipeline remembers: the first twenty."""
    return tuple(change.path for change in state.files_modified)


def planning_results(
    view: PipelineView, solution_of: Callable[[IssueState], Solution | None] = solution_in
) -> PlanningResults:
    """Return the content of `planning-results.json`: issues whose planning has ended, in the pipeline's order."""
    states = (state for state in view.issues if state.status not in {IssueStatus.WAITING, IssueStatus.PLANNING})
    results = tuple(_planning_result(state, solution_of) for state in states)
    return PlanningResults(created_at=view.created_at, results=results)


def execution_results(
    view: PipelineView, files_of: Callable[[IssueState], tuple[str, ...]] = files_in
) -> ExecutionResults:
    """Return the content of `execution-results.json`: planned issues that have ended, in the pipeline's order."""
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
    """Write the states of changed issues and all results; return the pipeline with every issue that is on disk.

    `some` has at least the issues that changed since the last call.

    Raises:
        OSError: The disk refused.
    """
    with hold_lock(store.folder / _LOCK):
        return _write_states(store, some)


def report(store: PipelineStore, view: PipelineView) -> None:
    """Write the states of the issues in `view` and all results, as `note` does, and then the report on all issues.

    Raises:
        OSError: The disk refused.
    """
    with hold_lock(store.folder / _LOCK):
        document = report_of(_write_states(store, view))
        _write_document(store, REPORT, document)
        write_durably(store.folder / REPORT_TEXT, as_markdown(document).encode(errors="replace"))


def documents(store: PipelineStore, view: PipelineView) -> tuple[PlanningResults, ExecutionResults]:
    """Return the results of planning and execution, with all details that this disk has."""
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
    """Return an issue's whole solution from disk; if the disk has none, the part that the pipeline remembers."""
    solution = store.solution_json(state.issue_id)
    same = solution is not None and (state.solution is None or solution.get("id") == state.solution.id)
    return solution if same else solution_in(state)


def _files(store: PipelineStore, state: IssueState) -> tuple[str, ...]:
    """Return all files that an issue changed, from its record on disk; without a record, the first twenty."""
    record = store.execution(state.issue_id) if state.status is IssueStatus.COMPLETED else None
    return record.files_modified if record is not None else files_in(state)
