"""In a pipeline the planner's solution is checked and kept, and the executor's answer is checked against it."""

from typing import Any

import pytest
from fakes.solutions import execution_answer, solution, solution_answer, task
from fakes.step_lab import FIXED, PLAN, StepLab

from septet.contracts.names import Step, Verdict
from septet.contracts.solution import ExecutionRecord, SolutionAnswer
from septet.contracts.steps import StepResult
from septet.pipelines.store import PipelineStore

IN_PIPELINE = {"pipeline": "wo"}
"""The lab's work order `wo-1` is issue 1 of the pipeline `wo`."""
SOLUTION = solution_answer(id="SOL-1", plan_path=PLAN)


def shelf(lab: StepLab) -> PipelineStore:
    """Return the store of the pipeline."""
    return PipelineStore(lab.parts.host.state.pipelines / "wo")


async def planned(lab: StepLab, *answers: dict[str, Any]) -> StepResult:
    """Plan in a pipeline; the agent gives these answers in turn."""
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
    assert "'../elsewhere.py' has `..` in it" in (lab.runs[-1].folder / "prompt.md").read_text()


async def test_what_is_carried_out_is_kept(lab: StepLab) -> None:
    """The record's files come from git, without the plan; a file that the answer lacks is a warning."""
    done = await executed(lab, {"src/app.py": FIXED, "src/more.py": "x\n"})
    assert (done.verdict, done.result_text) == (Verdict.DONE, "Totals are right.")
    assert "Changed, and not in files_modified: src/more.py." in done.warnings
    assert shelf(lab).execution("1") == ExecutionRecord(
        summary="Totals are right.",
        tasks=solution_tasks_done(),
        files_modified=("src/app.py", "src/more.py"),
    )


def solution_tasks_done() -> Any:
    """Return the tasks of the executor's answer."""
    return ExecutionRecord.model_validate(
        {"summary": "", "tasks": execution_answer()["tasks"]}, strict=False
    ).tasks


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"files_modified": ["src/app.py", "src/not_touched.py"]}, "git sees no change in src/not_touched.py"),
        ({"tasks": []}, "nothing is said of T1 of SOL-1"),
        ({"commit_hash": "deadbeef"}, "commit_hash 'deadbeef' is not a commit of this branch"),
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
