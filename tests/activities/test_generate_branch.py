import pytest
from fakes.repositories import git
from fakes.step_lab import BRANCH, PLAN, StepLab

from septet.contracts.names import Step, Verdict
from septet.contracts.steps import StepResult


async def _named(lab: StepLab, name: str) -> StepResult:
    await lab.open_to(Step.GENERATE_BRANCH)
    lab.scenario(generate_branch={"answer": {"branch_name": name}})
    return await lab.run(Step.GENERATE_BRANCH)


async def test_the_engine_makes_the_branch(lab: StepLab) -> None:
    """A branch that the agent only named is made at HEAD and checked out; the files stay as they are."""
    done = await _named(lab, BRANCH)
    assert (done.verdict, done.result_text, done.warnings) == (Verdict.DONE, BRANCH, ())
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == BRANCH
    assert git(lab.worktree, "status", "--porcelain", "-uall") == f"?? {PLAN}"


async def test_the_agents_own_branch_stays(lab: StepLab) -> None:
    """A branch that the agent made and checked out itself is taken as it is."""
    lab.agent(f"git('checkout', '-q', '-b', {BRANCH!r}); answer({{'branch_name': {BRANCH!r}}})")
    await lab.open_to(Step.GENERATE_BRANCH)
    done = await lab.run(Step.GENERATE_BRANCH)
    assert (done.verdict, done.result_text) == (Verdict.DONE, BRANCH)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bug..totals", "not a branch name that git accepts"),
        ("-f", "not a name for a branch"),
        ("main", "where the work starts from"),
        ("bug-taken", "already has a branch"),
    ],
)
async def test_a_name_that_cannot_be_used_is_refused(lab: StepLab, name: str, reason: str) -> None:
    """A name that git does not take, the base branch, and another's branch on the remote are refused."""
    lab.origin.push({"other.txt": "somebody else's\n"}, branch="bug-taken")
    refused = await _named(lab, name)
    assert refused.verdict is Verdict.UNPROVEN
    assert reason in refused.reasons[0]
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == "main"


async def test_a_name_without_the_work_orders_id_is_unusual(lab: StepLab) -> None:
    """A repository's own custom of naming is respected, with a warning."""
    done = await _named(lab, "bugfix/totals")
    assert done.verdict is Verdict.DONE
    assert "wo-1" in done.warnings[0]
