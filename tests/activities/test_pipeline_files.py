"""A pipeline's issues, read from their forge, and its results on its host."""

import json
from typing import Any

import pytest
from fakes.step_lab import StepLab
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.workspaces.pipelines import PipelineActivities
from septet.forges.local.forge import LocalForge
from septet.pipelines.inputs import IssuesRead, PipelineIssue, ReadIssues
from septet.pipelines.views import IssueState, IssueStatus, PipelineStatus, PipelineView


@pytest.fixture
def forge(lab: StepLab) -> LocalForge:
    """Return the forge of the lab's origin with four issues; the first three have a label."""
    forge = LocalForge(lab.origin.bare)
    forge.add_issue("First", "Depends on #3 and #4.\nDepends on #99", ["go"])
    forge.add_issue("Second", "Blocked by #1", ["go"])
    forge.add_issue("Third", "", ["go", "more"])
    forge.add_issue("Fourth")
    return forge


async def read(lab: StepLab, *ids: str, label: str | None = None) -> IssuesRead:
    """Read issues."""
    request = ReadIssues(repository=str(lab.origin.bare), ids=ids, label=label)
    issues: IssuesRead = await ActivityEnvironment().run(PipelineActivities(lab.parts.host).read_issues, request)
    return issues


async def test_issues_are_read_by_their_numbers(lab: StepLab, forge: LocalForge) -> None:
    """Issues come in the requested order with titles; dependencies outside the pipeline are dropped."""
    del forge
    assert await read(lab, "2", "1", "3") == IssuesRead(
        issues=(
            PipelineIssue(id="2", title="Second", depends_on=("1",)),
            PipelineIssue(id="1", title="First", depends_on=("3",)),
            PipelineIssue(id="3", title="Third"),
        )
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": ("1", "8", "9")}, "has no #8, #9"),
        ({"label": "none"}, "has no open issue with the label none"),
    ],
)
async def test_what_is_not_there_is_refused(
    lab: StepLab, forge: LocalForge, options: dict[str, Any], words: str
) -> None:
    """The error names the missing numbers or label, and is final."""
    del forge
    with pytest.raises(ApplicationError) as refused:
        await read(lab, *options.get("ids", ()), label=options.get("label"))
    assert words in refused.value.message
    assert refused.value.non_retryable


async def test_closed_issues_are_refused(lab: StepLab, forge: LocalForge) -> None:
    """A closed issue is refused by number, and left out by label."""
    forge.close_issue(3)
    with pytest.raises(ApplicationError, match="#3 of .* are closed"):
        await read(lab, "1", "3")
    assert [issue.id for issue in (await read(lab, label="go")).issues] == ["1", "2"]


def _view(pipeline: str = "p1") -> PipelineView:
    known = IssueState(issue_id="7", order_id="p1-7", status=IssueStatus.FAILED)
    return PipelineView(
        id=pipeline, repository="r", status=PipelineStatus.RUNNING, created_at="x", issues=(known,)
    )


async def test_results_and_report_lie_in_the_pipelines_folder(lab: StepLab) -> None:
    """The folder has both results after a note, and the report at the end; each activity may run twice."""
    pipelines = PipelineActivities(lab.parts.host)
    folder = lab.parts.host.state.pipelines / "p1"
    for _ in range(2):
        await ActivityEnvironment().run(pipelines.note_results, _view())
    assert json.loads((folder / "planning-results.json").read_bytes())["results"][0]["status"] == "failed"
    assert json.loads((folder / "execution-results.json").read_bytes())["results"] == []
    await ActivityEnvironment().run(pipelines.write_report, _view())
    assert (folder / "report.md").read_text().startswith("# Pipeline p1\n")


async def test_a_name_that_is_no_pipeline_makes_no_folder(lab: StepLab) -> None:
    """A path instead of an id fails, so nothing is written outside the pipelines' folder."""
    with pytest.raises(ApplicationError, match="not an id of a pipeline"):
        await ActivityEnvironment().run(PipelineActivities(lab.parts.host).note_results, _view("../p1"))
