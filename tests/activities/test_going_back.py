"""A reset to an earlier step leaves the worktree without the commit of later steps."""

import pytest
from fakes.repositories import git
from fakes.step_lab import FIXED, IMPLEMENTED, StepLab

from septet.contracts.names import Step, Verdict

MESSAGES = ("committer: bug: refused", "committer: bug: signed off")


@pytest.mark.parametrize("step", [Step.GENERATE_BRANCH, Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT])
async def test_a_step_is_done_again_without_the_commit_that_came_after_it(lab: StepLab, step: Step) -> None:
    """After the return to the checkpoint the steps make another commit, without the refused commit below it."""
    lab.scenario(
        implement_plan={"edits": {"src/app.py": FIXED}, "answer": IMPLEMENTED},
        create_commit=[{"answer": {"commit_message": message}} for message in MESSAGES],
    )
    await lab.open_to(step)
    start = lab.snapshots()[-1]
    lost = await _to_the_commit(lab, step, start)
    lab.run_id = "run-2"
    again = await _to_the_commit(lab, step, start)
    assert again == git(lab.worktree, "rev-parse", "HEAD")
    assert git(lab.worktree, "show", f"{again}:src/app.py") == FIXED.strip()
    subjects = git(lab.worktree, "log", "--format=%s", f"{lab.place.base_sha}..{again}")
    assert (subjects, lost == again) == (MESSAGES[1], False)


async def _to_the_commit(lab: StepLab, step: Step, start: str) -> str:
    """Run a step and its successors up to the commit, and return the commit."""
    for each in [each for each in Step if step.number <= each.number < Step.CREATE_PULL_REQUEST.number]:
        done = await lab.run(each, starts_from=start)
        assert done.verdict is Verdict.DONE, done.reasons
        start = done.checkpoint or start
        branch = done.result_text if each is Step.GENERATE_BRANCH else lab.progress.branch_name
        lab.progress = lab.progress.model_copy(update={"branch_name": branch, "commit_sha": done.commit_sha})
    return done.commit_sha or ""
