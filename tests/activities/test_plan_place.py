"""The place of the plan: a file of the branch, the pull request's text, or neither."""

import pytest
from fakes.repositories import git
from fakes.step_lab import BRANCH, FIXED, PLAN, StepLab

from septet.contracts.names import Step, Verdict

WORDS = {"title": "bug: sum the prices", "body": f"Totals were always 0, see [the plan]({PLAN})."}


async def _open_with(lab: StepLab, place: str, step: Step = Step.IMPLEMENT_PLAN) -> None:
    lab.origin.push({".septet/septet.toml": f'[pull_request]\nplan = "{place}"\n'})
    await lab.open_to(step)


async def _take(lab: StepLab, *steps: Step) -> None:
    for step in steps:
        done = await lab.run(step)
        assert done.verdict is Verdict.DONE, done
        sha = done.commit_sha or lab.progress.commit_sha
        lab.progress = lab.progress.model_copy(update={"commit_sha": sha})


@pytest.mark.parametrize("place", ["commit", "body", "none"])
async def test_the_plan_is_where_the_repository_wants_it(lab: StepLab, place: str) -> None:
    """`commit` puts the plan into the branch, `body` into the text; the worktree stays clean and has the plan."""
    await _open_with(lab, place)
    lab.scenario(implement_plan={"edits": {"src/app.py": FIXED}}, create_pull_request={"answer": WORDS})
    await _take(lab, Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST)
    files = git(lab.origin.bare, "ls-tree", "-r", "--name-only", BRANCH).split()
    assert (PLAN in files, "src/app.py" in files) == (place == "commit", True)
    (text,) = lab.pull_requests
    assert ("# Bug: totals" in text) == (place == "body")
    assert (f"[the plan]({PLAN})" in text) == (place == "commit")
    assert (lab.worktree / PLAN).read_text() == "# Bug: totals\n"
    assert git(lab.worktree, "status", "--porcelain") == ""


async def test_a_plan_that_the_base_has_stays_in_commits(lab: StepLab) -> None:
    """A plan file that the base has is committed like other files."""
    lab.origin.push({PLAN: "# Bug: old\n"})
    await _open_with(lab, "none")
    lab.scenario(implement_plan={"edits": {"src/app.py": FIXED}})
    await _take(lab, Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT)
    assert git(lab.worktree, "show", f"HEAD:{PLAN}") == "# Bug: totals"


@pytest.mark.parametrize("by", ["add", "commit"])
async def test_a_plan_that_the_agent_commits_is_taken_out_by_the_agent(lab: StepLab, by: str) -> None:
    """If the agent commits the plan by force, the step is refused, and the second try passes without the plan."""
    does = {"add": "git('add', '-f', PLAN)", "commit": "git('add', '-f', PLAN); git('commit', '-q', '-m', 'mine')"}
    await _open_with(lab, "none", Step.CREATE_COMMIT)
    lab.agent(f"PLAN = {PLAN!r}; {does[by]}; answer({{'commit_message': 'bug: sum the prices'}})")
    refused = await lab.run(Step.CREATE_COMMIT)
    assert refused.verdict is not Verdict.DONE
    assert any(f"{PLAN} is in the commits" in reason for reason in refused.reasons), refused
    undoes = "git('reset', '-q', '--soft', 'origin/main'); git('rm', '-q', '--cached', '--ignore-unmatch', PLAN)"
    lab.agent(f"PLAN = {PLAN!r}; {undoes}; answer({{'commit_message': 'bug: sum the prices'}})")
    done = await lab.run(Step.CREATE_COMMIT, attempt=2)
    assert done.verdict is Verdict.DONE, done
    assert git(lab.worktree, "ls-tree", "-r", "--name-only", "HEAD", "--", "specs") == ""
