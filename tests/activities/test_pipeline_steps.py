"""A pipeline's issues are read, the planner's solution is checked and kept, and the executor's answer is checked."""

from typing import Any

import pytest
from fakes.solutions import execution_answer, solution, solution_answer, task
from fakes.step_lab import FIXED, PLAN, StepLab
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.workspaces.pipelines import PipelineActivities
from septet.contracts.names import Step, Verdict
from septet.contracts.solution import ExecutionRecord, SolutionAnswer, TaskDone
from septet.contracts.steps import StepResult
from septet.forges.local.forge import LocalForge
from septet.pipelines.inputs import IssuesRead, PipelineIssue, ReadIssues
from septet.pipelines.store import PipelineStore
from septet.pipelines.views import PipelineStatus, PipelineView

IN_PIPELINE = {"pipeline": "wo"}
"""The lab's work order `wo-1` is issue 1 of the pipeline `wo`."""
SOLUTION = solution_answer(id="SOL-1", plan_path=PLAN)


def shelf(lab: StepLab) -> PipelineStore:
    return PipelineStore(lab.parts.host.state.pipelines / "wo")


async def planned(lab: StepLab, *answers: dict[str, Any]) -> StepResult:
    await lab.open_to(
        Step.BUILD_PLAN, [{"edits": {PLAN: "# Bug: totals\n"}, "answer": answer} for answer in answers]
    )
    return await lab.run(Step.BUILD_PLAN, **IN_PIPELINE)


async def executed(lab: StepLab, edits: dict[str, str | None], **changes: Any) -> StepResult:
    """Implement a solution with one task; the agent makes these edits, and its answer has these changes."""
    await lab.open_to(Step.IMPLEMENT_PLAN)
    shelf(lab).keep_solution("1", solution(task(), id="SOL-1", plan_path=PLAN))
    lab.scenario(implement_plan={"edits": edits, "answer": execution_answer(**changes)})
    return await lab.run(Step.IMPLEMENT_PLAN, **IN_PIPELINE)


async def test_a_solution_is_kept_whole_and_its_outline_goes_on(lab: StepLab) -> None:
    """The result holds the outline, and the pipeline's folder the whole solution."""
    done = await planned(lab, SOLUTION)
    assert (done.verdict, done.result_text) == (Verdict.DONE, PLAN)
    assert done.outline is not None
    assert (done.outline.id, done.outline.files) == ("SOL-1", ("src/app.py",))
    solution_file = lab.parts.host.state.pipelines / "wo" / "solutions" / "1.json"
    assert SolutionAnswer.model_validate_json(solution_file.read_bytes()).model_dump(mode="json") == SOLUTION


async def test_findings_go_back_to_the_planner_once(lab: StepLab) -> None:
    """A solution with findings is not proven and not kept, and the next prompt holds all findings."""
    wrong = {**SOLUTION, "id": "SOL-9", "predicted_files": ["src/app.py", "../elsewhere.py"]}
    refused = await planned(lab, wrong, SOLUTION)
    assert (refused.verdict, refused.outline) == (Verdict.UNPROVEN, None)
    assert "id is 'SOL-9': it is 'SOL-1'" in refused.reasons[0]
    assert "predicted_files: '../elsewhere.py' has `..` in it" in refused.reasons[0]
    assert shelf(lab).solution("1") is None

    again = await lab.run(Step.BUILD_PLAN, attempt=2, reasons=refused.reasons, **IN_PIPELINE)
    assert again.verdict is Verdict.DONE
    assert "'../elsewhere.py' has `..` in it" in lab.prompts[-1]


async def test_what_is_carried_out_is_kept(lab: StepLab) -> None:
    """The record's files come from git, without the plan; a file that the answer lacks is a warning."""
    done = await executed(lab, {"src/app.py": FIXED, "src/more.py": "x\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, "Totals are right.")
    assert "Changed, and not in files_modified: src/more.py." in done.warnings
    assert shelf(lab).execution("1") == ExecutionRecord(
        summary="Totals are right.",
        tasks=(TaskDone(id="T1", status="completed", note=""),),
        files_modified=("src/app.py", "src/more.py"),
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": []}, "nothing is said of T1 of SOL-1"),
        ({"commit_hash": "--help"}, "commit_hash '--help' is not a commit of this branch"),
    ],
)
async def test_a_claim_that_is_not_so_is_not_proven(lab: StepLab, changes: dict[str, Any], words: str) -> None:
    """A false claim is not proven, the reason names the claim, and no execution is recorded."""
    refused = await executed(lab, {"src/app.py": FIXED}, **changes)
    assert refused.verdict is Verdict.UNPROVEN
    assert words in refused.reasons[0]
    assert shelf(lab).execution("1") is None


async def test_a_renamed_and_a_deleted_file_are_changes(lab: StepLab) -> None:
    """The old and the new name of a renamed file, and a deleted file, count as changed."""
    lab.origin.push({"src/old.py": "a = 1\n" * 20, "src/gone.py": "b = 2\n"})
    tasks = [{"id": "T1", "status": "completed", "note": ""}]
    files = ["src/old.py", "src/new.py", str(lab.parts.host.state.workspaces / "wo-1/src/gone.py")]
    lab.agent(f"""
git('mv', 'src/old.py', 'src/new.py')
git('rm', '-q', 'src/gone.py')
git('commit', '-q', '-m', 'moved')
answer({{'status': 'completed', 'summary': 'Moved.', 'tasks': {tasks!r}, 'files_modified': {files!r},
        'commit_hash': subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, text=True).stdout.strip()}})
""")
    await lab.open_to(Step.IMPLEMENT_PLAN)
    shelf(lab).keep_solution("1", solution(task(), id="SOL-1", plan_path=PLAN))
    done = await lab.run(Step.IMPLEMENT_PLAN, **IN_PIPELINE)
    assert done.verdict is Verdict.DONE, done.reasons
    record = shelf(lab).execution("1")
    assert record is not None
    assert record.files_modified == ("src/gone.py", "src/new.py", "src/old.py")


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


async def test_a_name_that_is_no_pipeline_makes_no_folder(lab: StepLab) -> None:
    """A path instead of an id fails, so nothing is written outside the pipelines' folder."""
    view = PipelineView(id="../p1", repository="r", status=PipelineStatus.RUNNING, created_at="x", issues=())
    with pytest.raises(ApplicationError, match="not an id of a pipeline"):
        await ActivityEnvironment().run(PipelineActivities(lab.parts.host).note_results, view)
