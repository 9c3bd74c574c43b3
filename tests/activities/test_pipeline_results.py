"""Results of a pipeline lie in the pipeline's folder on its host."""

import json

import pytest
from fakes.step_lab import StepLab
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.workspaces.pipelines import PipelineActivities
from septet.contracts.pipeline_view import IssueState, IssueStatus, PipelineStatus, PipelineView


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
