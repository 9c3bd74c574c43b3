from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import Origin, git
from fakes.step_lab import BRANCH, StepLab, settings_of, step_lab
from temporalio.exceptions import ApplicationError

from septet.contracts.names import SETTINGS_PATH, Step, Verdict
from septet.contracts.steps import StepResult
from septet.forges.local.forge import LocalForge
from septet.forges.values import NewPullRequest
from septet.git.commits.push import note_push, push

NO_PREFIX = 'branch_prefix = ""'


async def _named(lab: StepLab, name: str, settings: str = "") -> StepResult:
    if settings:
        lab.origin.push({SETTINGS_PATH: settings}, branch="main")
    await lab.open_to(Step.GENERATE_BRANCH, {"answer": {"branch_name": name}})
    return await lab.run(Step.GENERATE_BRANCH)


@pytest.mark.parametrize(
    "dressed", [f"refs/heads/{BRANCH}", f"origin/{BRANCH}", f"`{BRANCH}`", f"`heads/{BRANCH}`"]
)
async def test_a_dressed_name_is_taken_without_its_dress(lab: StepLab, dressed: str) -> None:
    """Ref prefixes and backquotes are removed from the branch's name."""
    done = await _named(lab, dressed)
    assert (done.verdict, done.result_text) == (Verdict.DONE, BRANCH)
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == BRANCH


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("main", "where the work starts from"),
        ("bug-taken", "already has a branch"),
        ("a" * 40, "as something else than a branch"),
    ],
)
async def test_a_name_that_cannot_be_used_is_refused(lab: StepLab, name: str, reason: str) -> None:
    """If agents choose whole names, names that git reads otherwise, the base and others' branches are refused."""
    lab.origin.push({"other.txt": "somebody else's\n"}, branch="bug-taken")
    refused = await _named(lab, name, NO_PREFIX)
    assert refused.verdict is Verdict.UNPROVEN
    assert reason in refused.reasons[0]
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == "main"


@pytest.mark.parametrize("name", ["release/9.9", "stash", "main", "tags/v1.0"])
async def test_no_agent_chooses_where_a_branch_begins(lab: StepLab, name: str) -> None:
    """The engine puts its prefix and the id before names that mean something to git, CI or deployments."""
    done = await _named(lab, name)
    assert done.verdict is Verdict.DONE
    assert (done.result_text or "").startswith("septet/bug-wo-1-")
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == done.result_text


async def test_a_worker_may_leave_whole_names_to_agents(tmp_path: Path, origin: Origin) -> None:
    """Without a repository's prefix the worker's counts, and a name without the work order's id is a warning."""
    async with step_lab(tmp_path, origin, settings_of(tmp_path, branch_prefix="")) as lab:
        done = await _named(lab, "bugfix/totals")
    assert (done.verdict, done.result_text) == (Verdict.DONE, "bugfix/totals")
    assert "wo-1" in done.warnings[0]


async def _with_earlier(lab: StepLab, *, own: bool = True) -> LocalForge:
    await lab.open_to(Step.GENERATE_BRANCH)
    sha = lab.origin.push({"earlier.txt": "earlier work\n"}, branch=BRANCH)
    if own:
        note_push(lab.place, BRANCH, sha)
    forge = LocalForge(lab.origin.bare, lab.parts.host.settings.git_env)
    forge.open_pull_request(NewPullRequest(BRANCH, "main", "Totals", "", "wo-1"))
    lab.scenario(generate_branch={"answer": {"branch_name": "feat-issue-7-wo-1-another-name"}})
    return forge


async def test_the_branch_of_an_earlier_pull_request_is_kept(lab: StepLab) -> None:
    """A reset work order continues on the branch of its open pull request, whatever name the agent gives."""
    await _with_earlier(lab)
    done = await lab.run(Step.GENERATE_BRANCH)
    assert (done.verdict, done.result_text) == (Verdict.DONE, BRANCH)
    assert "/pull/1 already belongs to this work order" in done.warnings[0]
    assert git(lab.worktree, "symbolic-ref", "--short", "HEAD") == BRANCH


async def test_one_that_has_ended_is_told_before_more_is_paid_for(lab: StepLab) -> None:
    """If the work order's pull request is closed, the step fails for good, and no other branch begins."""
    forge = await _with_earlier(lab)
    forge.close_pull_request(1)
    failed = await lab.failing(lab.call(Step.GENERATE_BRANCH), "/pull/1 of this work order is closed")
    assert failed.non_retryable


async def test_a_branch_that_was_only_pushed_is_kept(lab: StepLab) -> None:
    """A work order continues on a branch that it pushed without a pull request, also if the name lacks the id."""
    await lab.open_to(Step.GENERATE_BRANCH)
    note_push(lab.place, "bugfix/totals", lab.origin.push({"earlier.txt": "it\n"}, branch="bugfix/totals"))
    lab.scenario(generate_branch={"answer": {"branch_name": BRANCH}})
    done = await lab.run(Step.GENERATE_BRANCH)
    assert (done.verdict, done.result_text) == (Verdict.DONE, "bugfix/totals")


async def test_what_a_person_pushed_there_is_not_replaced(lab: StepLab) -> None:
    """If the branch of the pull request has another person's commit, the step fails."""
    await _with_earlier(lab, own=False)
    with pytest.raises(ApplicationError, match="which the work order did not push"):
        await lab.run(Step.GENERATE_BRANCH)


@pytest.mark.parametrize("builds_on_it", [False, True])
async def test_the_branch_of_the_lanes_work_order_before_is_refused(lab: StepLab, builds_on_it: bool) -> None:
    """A lane's next work order is refused the earlier work order's branch, also if it builds on that branch."""
    lab.origin.push({SETTINGS_PATH: NO_PREFIX})
    await lab.open_to(Step.GENERATE_BRANCH)
    git(lab.worktree, "checkout", "-q", "-b", "bugfix/totals")
    git(lab.worktree, "commit", "-q", "--allow-empty", "-m", "the work before")
    sha = git(lab.worktree, "rev-parse", "HEAD")
    before = replace(lab.place, visitor="wo-0")
    push(before, "bugfix/totals", sha)
    if not builds_on_it:
        git(lab.worktree, "checkout", "-q", "main")
        git(lab.worktree, "branch", "-q", "-D", "bugfix/totals")
    lab.parts.host.snapshots.take(lab.place, "checkpoint", "the next work order's")
    lab.scenario(generate_branch={"answer": {"branch_name": "bugfix/totals"}})
    call = lab.call(Step.GENERATE_BRANCH)
    entered = call.workspace.model_copy(update={"lane": "wo-1", "began_at": sha if builds_on_it else ""})
    refused = await lab.running(call.model_copy(update={"workspace": entered}))
    assert refused.verdict is Verdict.UNPROVEN
    assert "already has a branch bugfix/totals" in refused.reasons[0]
