"""The written records of a pipeline: results in the agreed shapes, and the report."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.solutions import solution, task
from fakes.waiting import until

from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.solution import ExecutionRecord
from septet.contracts.task import TaskError
from septet.pipelines.records import execution_results, note, planning_results, report
from septet.pipelines.solution import outline_of
from septet.pipelines.store import PipelineStore
from septet.pipelines.views import (
    ExecutionResults,
    IssueState,
    IssueStatus,
    PipelineReport,
    PipelineStatus,
    PipelineView,
    PlanningResults,
)

AT = "2026-01-01T00:00:00.000Z"
LATER = "2026-01-01T00:05:00.000Z"
SOLUTION = solution(task())


@pytest.fixture
def store(tmp_path: Path) -> PipelineStore:
    return PipelineStore(tmp_path / "pipelines" / "p1")


def state(issue_id: str, status: IssueStatus, position: int = 0, **facts: Any) -> IssueState:
    return IssueState(issue_id=issue_id, order_id=f"p1-{issue_id}", status=status, position=position, **facts)


def planned(issue_id: str, status: IssueStatus, position: int = 0, **facts: Any) -> IssueState:
    return state(issue_id, status, position, solution=outline_of(SOLUTION), planned_at=LATER, **facts)


def view(*issues: IssueState, **facts: Any) -> PipelineView:
    known = {"status": PipelineStatus.RUNNING, "created_at": AT} | facts
    return PipelineView(id="p1", repository="/r.git", issues=issues, **known)


def read(store: PipelineStore, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((store.folder / name).read_bytes())
    return content


def test_what_is_put_in_the_place_of_something_is_told(store: PipelineStore) -> None:
    """A new solution, execution or state replaces the earlier one in the documents."""
    completed = planned("7", IssueStatus.COMPLETED, executed_at=LATER)
    for name in ("src/a", "src/b"):
        answer = SOLUTION.model_copy(update={"summary": f"By {name}."})
        store.keep_solution("7", answer)
        store.keep_execution("7", ExecutionRecord(summary="Done.", files_modified=(name,)))
        told = note(store, view(completed.model_copy(update={"commit_hash": name})))
        assert told.issues[0].commit_hash == name
        assert read(store, "planning-results.json")["results"][0]["solution"]["summary"] == f"By {name}."
        assert read(store, "execution-results.json")["results"][0]["files_modified"] == [name]
    note(store, view(completed))
    (store.folder / "solutions" / "7.json").write_text("{", encoding="utf-8")
    note(store, view(completed))
    assert read(store, "planning-results.json")["results"][0]["solution"].get("summary") != "By src/b."


def test_results_have_the_agreed_shapes(store: PipelineStore) -> None:
    """Both documents have phase, time and an entry for each issue, with whole solution, commit and all files."""
    store.keep_solution("7", SOLUTION)
    record = ExecutionRecord(summary="Done.", files_modified=tuple(f"src/{number}" for number in range(30)))
    store.keep_execution("7", record)
    note(store, view(planned("7", IssueStatus.COMPLETED, commit_hash="abc123", executed_at=LATER)))
    both = {"issue_id": "7", "solution_id": "SOL-7", "status": "completed"}
    planning = {**both, "solution": SOLUTION.model_dump(mode="json"), "planned_at": LATER}
    execution = {
        **both,
        "commit_hash": "abc123",
        "files_modified": [f"src/{number}" for number in range(30)],
        "executed_at": LATER,
    }
    for phase, entry in (("planning", planning), ("execution", execution)):
        assert read(store, f"{phase}-results.json") == {"phase": phase, "created_at": AT, "results": [entry]}


@pytest.mark.parametrize(
    ("known", "planning", "execution"),
    [
        (state("7", IssueStatus.WAITING), [], []),
        (planned("7", IssueStatus.PLANNED), ["completed"], []),
        (planned("7", IssueStatus.COMPLETED), ["completed"], ["completed"]),
        (planned("7", IssueStatus.FAILED), ["completed"], ["failed"]),
        (planned("7", IssueStatus.SKIPPED), ["completed"], ["skipped"]),
        (state("7", IssueStatus.FAILED), ["failed"], []),
        (state("7", IssueStatus.SKIPPED), ["skipped"], []),
        (state("7", IssueStatus.CANCELLED), ["skipped"], []),
    ],
)
def test_each_status_has_its_entries(known: IssueState, planning: list[str], execution: list[str]) -> None:
    """Each status has its entries: only a planned issue has an execution, and an unfinished step has no entry."""
    assert [entry.status for entry in planning_results(view(known)).results] == planning
    assert [entry.status for entry in execution_results(view(known)).results] == execution


def test_a_host_without_the_solution_tells_its_outline(store: PipelineStore) -> None:
    """A host without the issue's solution writes the outline, even if it has another solution."""
    note(store, view(planned("7", IssueStatus.PLANNED)))
    outline = outline_of(SOLUTION).model_dump(mode="json")
    assert read(store, "planning-results.json")["results"][0]["solution"] == outline
    store.keep_solution("7", solution(task(), id="SOL-7-2"))
    note(store, view(planned("7", IssueStatus.PLANNED)))
    assert read(store, "planning-results.json")["results"][0]["solution"] == outline


def test_the_report_tells_of_every_issue_that_was_ever_noted(store: PipelineStore) -> None:
    """The report has every noted issue with its plan, commit, files, cost, times and failure, and the sums."""
    done = planned(
        "7",
        IssueStatus.COMPLETED,
        0,
        title="Totals | are <b>wrong</b>\n# no heading",
        plan_path="specs/p.md",
        branch_name="bug-7",
        commit_hash="abcdef0123456789",
        pr_url="https://github.com/o/r/pull/1",
        files_modified=(FileChange(path="src/app.py", operation="modify"),),
        files_modified_count=3,
        usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25),
        planning_seconds=1.0,
        execution_seconds=2.0,
        overlaps=("9",),
    )
    rescue = Rescue(snapshot="p1-executor-1/0003-rescue", reason="tests fail")
    error = TaskError(type="Refused", message=f"The tests fail: {'x' * 300}.", remedy="Mend them.")
    note(store, view(done))
    failed = planned("8", IssueStatus.FAILED, 1, title="More", error=error, rescue=rescue, context="fresh")
    report(store, view(failed, status=PipelineStatus.COMPLETED, closed_at=LATER))
    text = (store.folder / "report.md").read_text()
    for words in (
        "- Issues: 2 (1 completed, 1 failed)",
        "- Planning: 1.0 s; execution: 2.0 s",
        "| 7 | completed | SOL-7 | abcdef012345 | https://github.com/o/r/pull/1 | 3.0 | 0.25 USD |",
        "## 7: Totals \\| are \\<b\\>wrong\\</b\\> \\# no heading\n",
        "- Files: src/app.py (modify) and 2 more",
        "- Changed the same files at the same time as: 9",
        f"- Why: The tests fail: {'x' * 300}. Mend them.",
        "- Rescue: p1-executor-1/0003-rescue (`septet rescue restore p1-executor-1/0003-rescue --to DIR`)",
        "- Context: fresh: its own sessions",
    ):
        assert words in text
    made = PipelineReport.model_validate_json((store.folder / "report.json").read_bytes())
    assert made.counts == {"completed": 1, "failed": 1}
    assert made.usage.cost_usd == 0.25
    assert [issue.issue_id for issue in made.pipeline.issues] == ["7", "8"]


_NOTES = """
import sys
from pathlib import Path
from septet.pipelines.views import IssueState, IssueStatus, PipelineStatus, PipelineView
from septet.pipelines.records import note
from septet.pipelines.store import PipelineStore
for number in range(100_000):
    known = IssueState(issue_id=str(number % 50), order_id="p1-x", status=IssueStatus.COMPLETED,
        position=number % 50, planned_at="x", title="y" * 5000)
    note(PipelineStore(Path(sys.argv[1])), PipelineView(id="p1", repository="r", status=PipelineStatus.RUNNING,
        created_at="x", issues=(known,)))
"""


def test_a_kill_at_any_moment_leaves_whole_documents(store: PipelineStore) -> None:
    """After SIGKILL both documents are whole, keep all earlier entries, and accept the next note."""
    before = 0
    for round_number in range(4):
        writer = subprocess.Popen([sys.executable, "-c", _NOTES, str(store.folder)])
        try:
            _wait_for_more(store, before + 1)
            time.sleep(0.01 * round_number)
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait(30)
        planning = PlanningResults.model_validate_json((store.folder / "planning-results.json").read_bytes())
        execution = ExecutionResults.model_validate_json((store.folder / "execution-results.json").read_bytes())
        assert len(planning.results) >= len(execution.results) > before
        before = min(len(execution.results), 40)
    whole = note(store, view(planned("99", IssueStatus.COMPLETED, 99)))
    assert len(read(store, "execution-results.json")["results"]) == len(whole.issues)


def _wait_for_more(store: PipelineStore, count: int) -> None:
    path = store.folder / "execution-results.json"
    until(lambda: path.exists() and len(json.loads(path.read_bytes())["results"]) >= count)
