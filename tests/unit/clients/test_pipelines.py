import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from clients.cli.pipelines.commands import pipeline_input
from clients.cli.pipelines.options import PipelineOptions
from clients.cli.pipelines.rendering import PipelineLines, next_commands, picture
from clients.pipelines.rows import counts_of, view_of_input
from septet.contracts.facts import FileChange
from septet.contracts.lanes import Lane
from septet.contracts.solution import Outline
from septet.contracts.task import TaskError
from septet.errors import InvalidInputError, NotFoundError, SeptetError, UsageError
from septet.pipelines.inputs import PipelineInput
from septet.pipelines.views import (
    ContinuedState,
    IssueState,
    IssueStatus,
    PipelineRun,
    PipelineStatus,
    PipelineView,
)

WHEN = "2025-01-01T00:00:00.000Z"
OUTLINE = Outline(id="SOL-1", summary="Do it.", files=("app.py",), files_count=1)


def issue(name: str, status: IssueStatus, **facts: Any) -> IssueState:
    return IssueState(issue_id=name, order_id=f"pl-1-{name}", title=f"Title {name}", status=status, **facts)


DONE = issue(
    "1",
    IssueStatus.COMPLETED,
    planned_at=WHEN,
    executed_at=WHEN,
    solution=OUTLINE,
    commit_hash="c0ffee",
    files_modified=(FileChange(path="app.py", operation="modify"),),
    files_modified_count=1,
)
UNPLANNED = issue("2", IssueStatus.FAILED, error=TaskError(type="StepFailed", message="No plan."))
BROKEN = issue("3", IssueStatus.FAILED, planned_at=WHEN, executed_at=WHEN, solution=OUTLINE)
SKIPPED = issue("4", IssueStatus.SKIPPED)
PLANNED = issue("5", IssueStatus.PLANNED, planned_at=WHEN, solution=OUTLINE)
WAITING = issue("6", IssueStatus.WAITING)


def view(*issues: IssueState, status: PipelineStatus = PipelineStatus.RUNNING) -> PipelineView:
    return PipelineView(id="pl-1", repository="/srv/app.git", status=status, created_at=WHEN, issues=issues)


def options(**given: Any) -> PipelineOptions:
    return PipelineOptions(**{"repo": "/srv/app.git", **given})


def test_a_pipeline_that_nobody_tells_of_is_shown_as_it_was_asked_for() -> None:
    """Without a view the input's issues wait; a later run shows the state that it was given."""
    asked = PipelineInput.model_validate_json('{"repository": "/srv/app.git", "issues": [7, 8], "fresh": true}')
    first = view_of_input("pl-1", asked, WHEN)
    assert [(each.issue_id, each.order_id, each.status) for each in first.issues] == [
        ("7", "pl-1-7", IssueStatus.WAITING), ("8", "pl-1-8", IssueStatus.WAITING),
    ]  # fmt: skip
    assert (first.status, first.issues[0].context, first.planner) == (PipelineStatus.RUNNING, "fresh", None)
    lanes = tuple(Lane(id=f"pl-1-{name}", pipeline="pl-1") for name in ("planner", "executor-1"))
    known = ContinuedState(created_at=WHEN, first_run_id="r", issues=(DONE, WAITING), lanes=lanes, paused=True)
    later = view_of_input("pl-1", PipelineRun(**dict(asked), carried=known), "2026-01-01T00:00:00.000Z")
    assert (later.status, later.created_at, later.issues) == (PipelineStatus.PAUSED, WHEN, (DONE, WAITING))
    assert (later.planner, later.executors) == (lanes[0], lanes[1:])
    stopping = PipelineRun(**dict(asked), carried=known.model_copy(update={"stopping": True}))
    assert view_of_input("pl-1", stopping, WHEN).status is PipelineStatus.STOPPING


def test_the_command_line_becomes_a_pipelines_input(tmp_path: Path) -> None:
    """Issues come from numbers, a label or a file, and those of a file keep their dependencies."""
    assert [each.number for each in pipeline_input(options(issues="1, #2,3")).issue_list] == [1, 2, 3]
    assert pipeline_input(options(label="ready", executors=2)).label == "ready"
    file = tmp_path / "issues.json"
    file.write_text(json.dumps([{"id": "a", "title": "A", "body": "x"}, {"id": "1", "depends_on": ["a"]}, 2]))
    assert [each.depends_on for each in pipeline_input(options(file=file)).issue_list] == [(), ("a",), ()]


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"issues": "1", "label": "x"}, UsageError, "which issues"),
        ({"issues": "1", "repo": "/srv/b\udcff"}, InvalidInputError, "--repo must be valid UTF-8 text"),
        ({"issues": "1", "executors": 2, "one_branch": True}, InvalidInputError, "one_branch needs one executor"),
        ({"file": Path("/nonexistent/issues.json")}, NotFoundError, "--file /nonexistent/issues.json"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], error: type[SeptetError], says: str) -> None:
    """A wrong option is refused, and the error names it."""
    with pytest.raises(error, match=says):
        pipeline_input(options(**given))


def test_at_its_end_a_pipeline_says_what_to_type_next() -> None:
    """The next commands are the report and one merge of all local pull requests."""
    issues = [
        issue(name, IssueStatus.COMPLETED, pr_url=f"file:///srv/my%20app/pull/{name}") for name in ("1", "2")
    ]
    assert [typed for typed, _ in next_commands(view(*issues, BROKEN))] == [
        "septet pipeline report pl-1", "septet pr merge 1 2 --repo '/srv/my app'",
    ]  # fmt: skip


def test_each_change_is_a_line_once() -> None:
    """Each change of an issue is one line with its reason; waiting issues give no line."""
    lines = PipelineLines()
    assert list(lines.new_lines(view(WAITING))) == ["pl-1: running"]
    assert list(lines.new_lines(view(WAITING))) == []
    assert list(lines.new_lines(view(UNPLANNED))) == ["2  failed  Title 2  No plan."]


def test_a_picture_of_a_thousand_issues_fits_the_terminal() -> None:
    """The picture shows the issues around the current one, and counts the others."""
    done = [issue(str(number), IssueStatus.COMPLETED) for number in range(600)]
    rest = [issue(str(number), IssueStatus.WAITING) for number in range(600, 1000)]
    out = Console(width=80, height=20, record=True, file=Path("/dev/null").open("w", encoding="utf-8"))  # noqa: SIM115 -- as long as the test
    with out.file:
        out.print(picture(view(*done, *rest), 20))
    text = out.export_text()
    assert len(text.splitlines()) < 20
    assert "Title 600" in text
    assert "984 more" in text
    assert counts_of(view(*done, *rest)) == {IssueStatus.WAITING: 400, IssueStatus.COMPLETED: 600}
