"""The memory of a pipeline of 1,000 issues: each message of the pipeline fits into a payload of 2 MB."""

from datetime import UTC, datetime

import pytest
from pydantic_core import to_json

from septet.contracts.facts import FileChange, Rescue, Usage
from septet.contracts.lanes import Role
from septet.contracts.solution import Outline
from septet.contracts.task import Task, TaskError, TaskStep
from septet.errors import InvalidInputError
from septet.pipelines.inputs import MOST_DEPENDENCIES, MOST_ISSUES, TEXT_LIMIT_BYTES, PipelineIssue
from septet.pipelines.issues import order_issues
from septet.pipelines.records import as_markdown, report_of
from septet.pipelines.views import IssueSession, IssueState, IssueStatus, NotedIssues, PipelineRun
from workflows.pipeline.state import PipelineState

PAYLOAD_BYTES = 2 * 1024 * 1024
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSIONS = tuple(
    IssueSession(role=role, session_id="0199a213-81c0-7800-8aa1-bbab2a035a53", context="shared") for role in Role
)


def state_of(count: int, text: str, late: int = MOST_ISSUES) -> PipelineState:
    """Return a pipeline with long ids and as many dependencies as possible; the last issues have texts."""
    names = [f"issue-{number:04}-{'x' * 9}" for number in range(count)]
    most = min(MOST_DEPENDENCIES // count, 100)
    issues = tuple(
        PipelineIssue(
            id=name,
            title="\N{SNOWMAN}" * 160 if late == MOST_ISSUES else "t",
            body=text if at >= count - late else "",
            depends_on=tuple(names[max(0, at - most) : at]),
        )
        for at, name in enumerate(names)
    )
    state = PipelineState()
    state.begin("p" * 40, PipelineRun(repository="/app", issues=issues), "run", NOW)
    state.add_issues(issues)
    return state


def end(state: PipelineState, issue: IssueState) -> None:
    """Let an issue fail after the largest possible result."""
    files = tuple(FileChange(path=f"{'folder/' * 30}{number}.py", operation="modify") for number in range(20))
    paths = tuple(change.path for change in files[:4])
    changed = state.change_issue(
        issue,
        status=IssueStatus.EXECUTING,
        solution=Outline(id="SOL-1", summary="s" * 160, files=paths, files_count=20),
        files_modified=files,
        files_modified_count=20,
        overlaps=tuple(f"issue-{number}" for number in range(100)),
        sessions=SESSIONS,
        done_at=f"{state.id}-executor-1/0001-checkpoint",
        planned_at="2026-01-01T00:00:00.000Z",
    )
    rescue = Rescue(snapshot=f"{state.id}-executor-1/0002-rescue", reason="r" * 500, patch="/p" * 500, host="h")
    task = Task(
        id=issue.order_id, title="\N{SNOWMAN}" * 300, plan_path="specs/" + "p" * 250, branch_name="b" * 100,
        commit_sha="c" * 40, pr_url="https://github.com/organisation/repository/pull/12345", rescues=(rescue,),
    )  # fmt: skip
    state.end_issue(
        changed, IssueStatus.FAILED, NOW, task, TaskError(type="X", message="m" * 2000, remedy="r" * 2000)
    )


@pytest.mark.parametrize("late", [MOST_ISSUES, 40])
@pytest.mark.parametrize("done", [0, 40, 500, 960])
def test_what_goes_on_to_the_next_run_fits_into_a_payload(done: int, late: int) -> None:
    """The next run's input fits into a payload, whatever the issues' texts and results are."""
    title = 3 * 160 + 2 if late == MOST_ISSUES else 3
    state = state_of(MOST_ISSUES, "\n" * ((TEXT_LIMIT_BYTES - title * MOST_ISSUES) // late // 2), late)
    for issue in list(state.issues.values())[:done]:
        end(state, issue)
    rest = tuple(text for text in state.request.issue_list if state.issues[text.id].status is IssueStatus.WAITING)
    rest = tuple(text.model_copy(update={"depends_on": ()}) for text in rest)
    carried = state.continued_state(
        NotedIssues(queue="q" * 200, lacks=tuple(state.issues))
    )  # as if no note had been written
    run = state.request.model_copy(update={"issues": rest, "carried": carried})
    content = to_json(run)
    assert len(content) < 0.9 * PAYLOAD_BYTES
    assert PipelineRun.model_validate_json(content).carried == carried


def test_all_that_a_pipeline_came_to_fits_into_a_payload() -> None:
    """The view of a pipeline with 1,000 failed issues fits into a payload; result, query and report contain it."""
    state = state_of(MOST_ISSUES, "")
    for issue in list(state.issues.values()):
        end(state, issue)
    assert len(to_json(state.view())) < 0.9 * PAYLOAD_BYTES


def test_what_a_closed_issue_came_to_is_cut_and_not_lost() -> None:
    """A closed issue keeps branch, commit, snapshots and the beginning of its error, and loses its files."""
    state = state_of(MOST_ISSUES, "")
    first = next(iter(state.issues.values()))
    end(state, first)
    kept = state.issues[first.issue_id]
    assert kept.error is not None
    assert kept.rescue is not None
    assert (kept.files_modified_count, kept.files_modified) == (20, ())
    assert kept.error.message.endswith("m…")
    assert (kept.rescue.snapshot, kept.done_at) == (
        f"{state.id}-executor-1/0002-rescue",
        f"{state.id}-executor-1/0001-checkpoint",
    )
    assert (kept.commit_hash, kept.branch_name, kept.depends_on) == ("c" * 40, "b" * 100, first.depends_on)


def test_more_dependencies_than_can_be_carried_are_refused() -> None:
    """Too many dependencies are refused, and the error names the limit."""
    names = [str(number) for number in range(1, 202)]
    issues = [
        PipelineIssue(id=name, depends_on=tuple(names[max(0, at - 100) : at])) for at, name in enumerate(names)
    ]
    with pytest.raises(InvalidInputError, match="15050 dependencies, and at most 5000 are allowed"):
        order_issues(issues)


def test_an_issue_that_failed_before_its_plan_was_ready_keeps_the_time_that_planning_took() -> None:
    """The report counts the planning time and cost of an issue that failed before its plan was ready."""
    state = state_of(1, "x", 1)
    (issue,) = state.issues.values()
    row = TaskStep(step="build_plan", agent_name="planner", agent="claude", success=False, duration_seconds=49.0)
    usage = Usage(input_tokens=9, cost_usd=0.12)
    task = Task(id=issue.order_id, steps=(row,), usage=usage)
    state.end_issue(issue, IssueStatus.FAILED, NOW, task, TaskError(type="X", message="m"))
    text = as_markdown(report_of(state.view()))
    assert "- Planning: 49.0 s; execution: none" in text
    assert "| 49.0 | 0.12 USD |" in text
