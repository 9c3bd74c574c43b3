from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import Origin, git
from fakes.step_lab import BRANCH, IMPLEMENTED, PLAN, TITLE, StepLab, settings_of, step_lab
from pydantic import SecretStr

from septet.contracts.names import Step, Verdict
from septet.forges.http.pauses import PAUSES
from septet.forges.local.forge import LocalForge

pytestmark = pytest.mark.law

WORDS = {"title": "bug: sum the prices", "body": "Totals were always 0."}


async def test_the_branch_is_pushed_and_one_pull_request_opened(lab: StepLab) -> None:
    """The origin has the branch at the commit, and the one pull request has the agent's words."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    done = await lab.run(Step.CREATE_PULL_REQUEST)
    assert (done.verdict, done.result_text) == (Verdict.DONE, f"{lab.origin.bare.as_uri()}/pull/1")
    assert lab.origin.sha(BRANCH) == lab.progress.commit_sha == done.commit_sha
    (pull_request,) = lab.pull_requests
    assert all(words in pull_request for words in (BRANCH, WORDS["title"], WORDS["body"], "wo-1"))


async def test_a_second_run_opens_no_second_one(lab: StepLab) -> None:
    """Another attempt and another workflow run find the first pull request of the branch."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    first = await lab.running(call)
    second = await lab.running(call)
    lab.run_id = "run-2"
    third = await lab.running(call)
    assert first.result_text == second.result_text == third.result_text
    assert len(lab.pull_requests) == 1


async def test_one_pull_request_tells_of_every_work_order_on_its_branch(lab: StepLab) -> None:
    """The next work order on a branch adds its words to the pull request, so the merge closes both issues."""
    await lab.open_to(
        Step.CREATE_PULL_REQUEST, [{"answer": WORDS}, {"answer": {"title": "More", "body": "Closes #8"}}]
    )
    call = lab.call(Step.CREATE_PULL_REQUEST)
    first = await lab.running(call)
    workspace = call.workspace.model_copy(
        update={"work_order_id": "wo-2", "issue_number": "8", "lane": "wo-1", "began_at": call.workspace.base_sha}
    )
    lab.run_id = "run-2"
    second = await lab.running(call.model_copy(update={"workspace": workspace}))
    assert (second.verdict, second.result_text) == (Verdict.DONE, first.result_text)
    (text,) = lab.pull_requests
    assert all(words in text for words in (WORDS["title"], WORDS["body"], "## More", "Closes #8"))


async def test_on_one_branch_each_work_order_adds_its_commit_and_replaces_its_own_alone(lab: StepLab) -> None:
    """A work order adds its commit to the commit before, and replaces its own pushed commit by a better commit."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    lane = call.workspace.model_copy(update={"lane": "wo-1"})
    before = await lab.running(call.model_copy(update={"workspace": lane}))
    own = lane.model_copy(update={"work_order_id": "wo-2", "visit": "/2", "began_at": before.commit_sha})
    for number, options in enumerate(([], ["--amend"]), 2):
        lab.write("other.py", f"other = {number}\n")
        lab.commit(*options)
        lab.run_id = f"run-{number}"
        done = await lab.running(lab.call(Step.CREATE_PULL_REQUEST).model_copy(update={"workspace": own}))
        assert (done.verdict, done.result_text) == (Verdict.DONE, before.result_text)
        assert lab.origin.sha(BRANCH) == lab.progress.commit_sha
    assert git(lab.origin.bare, "rev-parse", f"{BRANCH}^") == before.commit_sha


async def test_what_the_lanes_work_order_before_pushed_is_not_replaced(lab: StepLab) -> None:
    """If a lane's next work order names the same branch, it does not replace the earlier work order's commit."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    workspace = call.workspace.model_copy(update={"lane": "wo-1"})
    before = await lab.running(call.model_copy(update={"workspace": workspace}))
    git(lab.worktree, "checkout", "-q", "-B", BRANCH, call.workspace.base_sha)
    lab.write("other.py", "other = 1\n")
    lab.commit()
    lab.run_id = "run-2"
    next_one = workspace.model_copy(update={"work_order_id": "wo-2", "visit": "/2"})
    failed = await lab.failing(
        lab.call(Step.CREATE_PULL_REQUEST).model_copy(update={"workspace": next_one}), "has commits"
    )
    assert failed.non_retryable
    assert lab.origin.sha(BRANCH) == before.commit_sha
    assert len(lab.pull_requests) == 1


async def test_one_that_was_closed_is_told_and_not_opened_again(lab: StepLab) -> None:
    """The step fails for good with a remedy, and neither reopens the closed pull request nor opens another."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    first = await lab.running(call)
    LocalForge(lab.origin.bare).close_pull_request(1)
    lab.run_id = "run-2"
    failed = await lab.failing(call, "is closed")
    assert first.verdict is Verdict.DONE
    assert failed.non_retryable
    assert failed.details[0].remedy == "Start another work order for the rest."
    assert len(lab.pull_requests) == 1


async def test_no_implementation_is_paid_for_once_it_was_closed(lab: StepLab) -> None:
    """A work order that returns to the implementation fails with a remedy before an agent starts."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    await lab.running(lab.call(Step.CREATE_PULL_REQUEST))
    LocalForge(lab.origin.bare).close_pull_request(1)
    lab.run_id, started = "run-2", len(lab.runs)
    failed = await lab.failing(lab.call(Step.IMPLEMENT_PLAN), "is closed")
    assert failed.non_retryable
    assert failed.details[0].remedy == "Start another work order for the rest."
    assert len(lab.runs) == started


async def test_a_base_that_is_gone_is_told_as_that(lab: StepLab) -> None:
    """The error names the missing base branch, and the remedy names `septet retry`."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    git(lab.origin.bare, "update-ref", "-d", "refs/heads/main")
    failed = await lab.failing(lab.call(Step.CREATE_PULL_REQUEST), "no longer has the branch main")
    assert failed.non_retryable
    assert "septet retry" in failed.details[0].remedy


async def test_one_that_was_merged_is_the_result(lab: StepLab) -> None:
    """The merged pull request is the step's result, with a warning."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    first = await lab.running(call)
    LocalForge(lab.origin.bare, lab.parts.host.settings.git_env).merge_pull_request(1)
    lab.run_id = "run-2"
    second = await lab.running(call)
    assert (second.verdict, second.result_text) == (Verdict.DONE, first.result_text)
    assert any("already merged" in warning for warning in second.warnings)
    assert len(lab.pull_requests) == 1


async def test_an_address_alone_takes_its_words_from_the_issue(lab: StepLab) -> None:
    """If the agent answers with an address only, the engine opens the pull request with words of the issue."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": "https://forge.example/o/r/pull/12"})
    done = await lab.run(Step.CREATE_PULL_REQUEST)
    assert done.result_text == f"{lab.origin.bare.as_uri()}/pull/1"
    assert TITLE in lab.pull_requests[0]


async def test_without_a_commit_there_is_none(lab: StepLab) -> None:
    """Without a proven branch and commit the step is not proven and opens no pull request."""
    await lab.open_to(Step.CREATE_COMMIT)
    lab.scenario(create_pull_request={"answer": WORDS})
    refused = await lab.run(Step.CREATE_PULL_REQUEST)
    assert refused.verdict is Verdict.UNPROVEN
    assert lab.pull_requests == []


async def test_what_others_pushed_is_not_replaced(lab: StepLab) -> None:
    """A branch with another person's commit stays as it is, and the step fails with a remedy."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    others = lab.origin.push({"others.txt": "mine\n"}, branch=BRANCH)
    lab.scenario(create_pull_request={"answer": WORDS})
    failed = await lab.failing(lab.call(Step.CREATE_PULL_REQUEST), "has commits")
    assert failed.non_retryable
    assert failed.details[0].remedy
    assert lab.origin.sha(BRANCH) == others


@pytest.fixture
def slow_forge() -> Iterator[GitHubFake]:
    """Return a forge whose branches the test sets, whatever was pushed."""
    PAUSES.clear()
    with serving_forge(GitHubFake()) as forge:
        yield forge


async def test_a_forge_that_does_not_show_the_push_yet_is_asked_again(
    tmp_path: Path, origin: Origin, slow_forge: GitHubFake
) -> None:
    """The step waits until the forge shows the pushed commit, and pays no second agent."""
    knows_it = {
        "github_hosts": (slow_forge.url.removeprefix("http://"),),
        "github_token": SecretStr(slow_forge.token),
        "github_api_url": slow_forge.url,
    }
    async with step_lab(tmp_path, origin, settings_of(tmp_path).model_copy(update=knows_it)) as lab:
        await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
        call = lab.call(Step.CREATE_PULL_REQUEST)
        there = call.workspace.model_copy(update={"repository": f"{slow_forge.url}/o/foo.js.git"})
        branches = {"main": call.workspace.base_sha, BRANCH: "b" * 40}
        slow_forge.heads["o/foo.js"] = branches
        slow_forge.open_pull("o/foo.js", BRANCH, "main", "Totals", "<!-- septet: wo-1 -->")
        call = call.model_copy(update={"workspace": there})
        failed = await lab.failing(call, "does not show")
        assert not failed.non_retryable
        branches[BRANCH] = lab.progress.commit_sha or ""
        done = await lab.running(call)
        assert (done.verdict, done.agent_starts, len(lab.runs)) == (Verdict.DONE, 1, 1)
        assert done.result_text == f"{slow_forge.url}/o/foo.js/pull/1"


async def test_what_the_branch_does_not_hold_is_told_to_whoever_merges(lab: StepLab) -> None:
    """The pull request and the step's warning name the branches that the work depends on and does not contain."""
    await lab.open_to(Step.CREATE_PULL_REQUEST, {"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    workspace = call.workspace.model_copy(update={"lacks": ("feat-greet-twice", "feat-goodbye")})
    done = await lab.running(call.model_copy(update={"workspace": workspace}))
    notice = "This also depends on `feat-greet-twice`, `feat-goodbye`, whose work is not in this branch"
    assert [warning[: len(notice)] for warning in done.warnings] == [notice]
    (pull_request,) = lab.pull_requests
    assert notice in pull_request
    assert WORDS["body"] in pull_request


async def test_what_was_erased_from_the_base_is_not_pushed_again(lab: StepLab) -> None:
    """The step pushes the work on the new base, moves the worktree, and a second attempt pushes the same commit."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    erased = lab.origin.rewrite({"others.txt": "others\n"})
    lab.scenario(create_pull_request={"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    done, again = await lab.running(call), await lab.running(call)
    assert (done.verdict, again.commit_sha) == (Verdict.DONE, done.commit_sha)
    assert lab.origin.sha(BRANCH) == done.commit_sha != lab.progress.commit_sha
    assert git(lab.origin.bare, "rev-parse", f"{BRANCH}^") == lab.origin.sha("main")
    assert erased not in git(lab.origin.bare, "rev-list", "--all").split()
    assert any("was force-pushed" in warning and erased[:12] in warning for warning in done.warnings)
    assert git(lab.worktree, "rev-parse", "HEAD") == done.commit_sha
    assert not git(lab.worktree, "status", "--porcelain")
    assert (lab.worktree / "others.txt").exists()


async def test_work_that_does_not_fit_on_the_new_base_is_not_pushed(lab: StepLab) -> None:
    """The step returns to the implementor with the conflict in the worktree, and pushes no branch."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    lab.origin.rewrite({"src/app.py": "others\n"})
    lab.scenario(create_pull_request={"answer": WORDS})
    call = lab.call(Step.CREATE_PULL_REQUEST)
    result, again = await lab.running(call), await lab.running(call)
    assert (result.verdict, result.goes_back_to) == (Verdict.UNPROVEN, Step.IMPLEMENT_PLAN)
    assert (again.goes_back_to, again.reasons) == (result.goes_back_to, result.reasons)
    assert "bring both together in src/app.py" in result.reasons[0]
    assert again.checkpoint == lab.snapshots()[-1]
    assert lab.origin.sha(BRANCH) == ""
    assert (lab.worktree / "src/app.py").read_text().startswith("<<<<<<< ")

    lab.scenario(implement_plan={"answer": IMPLEMENTED})
    unresolved = await lab.run(Step.IMPLEMENT_PLAN)
    assert "src/app.py still hold its markers" in unresolved.reasons[0]


async def test_a_file_that_the_new_base_has_no_longer_is_a_persons_word(lab: StepLab) -> None:
    """If the new base removed a file that the work changes, the step fails for a person, without an agent."""
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    lab.origin.rewrite({"src/app.py": None})
    lab.scenario(create_pull_request={"answer": WORDS})
    raised = await lab.failing(lab.call(Step.CREATE_PULL_REQUEST), r"does not fit on .*src/app\.py")
    assert raised.type == "LostBase"
    assert lab.origin.sha(BRANCH) == ""


async def test_a_plan_that_is_not_on_the_branch_is_not_linked(lab: StepLab) -> None:
    """If the repository ignores the plan, each link to the plan becomes its name, and the text says why."""
    lab.origin.push({".gitignore": "specs/\n"})
    await lab.open_to(Step.CREATE_PULL_REQUEST)
    body = f"Fixed by [the plan](../blob/x/{PLAN}#steps), see <https://forge.example/o/r/blob/x/{PLAN}>, `{PLAN}`."
    lab.scenario(create_pull_request={"answer": {**WORDS, "body": body}})
    done = await lab.run(Step.CREATE_PULL_REQUEST)
    assert done.verdict is Verdict.DONE
    (pull_request,) = lab.pull_requests
    assert f"Fixed by the plan, see `{PLAN}`, `{PLAN}`." in pull_request
    assert f"The plan `{PLAN}` is not on this branch." in pull_request
