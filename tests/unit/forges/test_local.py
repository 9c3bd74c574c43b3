"""The `local` forge: JSON under a ref of a repository on disk."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, git_env, make_origin
from fakes.shell_programs import write_program

from septet.errors import ForgeError, ForgeUnavailableError, NotFoundError, RefusedTransitionError
from septet.forges.events.polls import PullRequestPolls
from septet.forges.local.forge import LocalForge
from septet.forges.values import NewPullRequest, PullRequest

NEW = NewPullRequest("feat-1", "main", "A thing", "Body.", "wo-1", labels=("bug", "bug"))


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return an origin with a pushed branch."""
    origin = make_origin(tmp_path / "my repos", name="foo.js.git")
    origin.push({"a": "1"})
    origin.push({"b": "1"}, branch="feat-1")
    return origin


@pytest.fixture
def forge(origin: Origin, tmp_path: Path) -> LocalForge:
    """Return the origin's forge."""
    return LocalForge(origin.bare, git_env(tmp_path / "home"))


def test_an_unknown_issue_is_not_found(forge: LocalForge) -> None:
    """An unknown number is not found, and the remedy names the command that adds an issue."""
    forge.add_issue("First")

    with pytest.raises(NotFoundError, match="no issue 2") as missing:
        forge.issue(2)

    assert "septet issue add" in missing.value.remedy


@pytest.mark.law
def test_a_pull_request_is_opened_once(forge: LocalForge, origin: Origin) -> None:
    """A second request returns the first pull request, whatever title it has."""
    assert forge.find_pull_request("feat-1") is None

    opened = forge.open_pull_request(NEW)

    assert PullRequest(1, f"{origin.bare.as_uri()}/pull/1", "feat-1", "main", origin.sha("feat-1")) == opened
    assert opened == forge.open_pull_request(replace(NEW, title="Other"))
    assert opened == forge.find_pull_request("feat-1")
    assert forge.find_pull_request("main") is None


def test_a_pull_request_takes_in_another_work_order(forge: LocalForge, origin: Origin) -> None:
    """A second work order's title, body and mark are added once; an unknown pull request causes an error."""
    more = replace(NEW, title="More", body="Closes #2", marker="wo-2")
    opened = forge.open_pull_request(NEW)
    for _ in range(2):
        forge.add_to_pull_request(opened.number, more)
    shown = git(origin.bare, "show", "refs/septet/forge:pull-1.json")
    assert shown.count("## More") == shown.count("Closes #2") == shown.count("<!-- septet: wo-2 -->") == 1
    assert forge.find_pull_request("feat-1") == opened
    with pytest.raises(NotFoundError):
        forge.add_to_pull_request(7, more)


@pytest.mark.parametrize("new", [replace(NEW, head="none"), replace(NEW, base="none")])
def test_branches_must_be_there(forge: LocalForge, new: NewPullRequest) -> None:
    """A pull request with a head or base that was not pushed is refused."""
    with pytest.raises(ForgeError, match="no branch none") as refused:
        forge.open_pull_request(new)

    assert "Push" in refused.value.remedy


def test_writers_at_the_same_time_lose_nothing(forge: LocalForge) -> None:
    """Threads that add issues at once lose no issue and share no number, and open one pull request."""
    with ThreadPoolExecutor(4) as threads:
        added = list(threads.map(lambda number: forge.add_issue(f"Issue {number}"), range(12)))
        opened = set(threads.map(lambda _: forge.open_pull_request(NEW).number, range(6)))

    assert set(range(1, 13)) == {issue.number for issue in added}
    assert {f"Issue {number}" for number in range(12)} == {forge.issue(number).title for number in range(1, 13)}
    assert {1} == opened


def test_a_ref_that_stays_locked_is_given_up(forge: LocalForge, origin: Origin) -> None:
    """A write ends after a limit of tries, with an error that a retry may solve."""
    lock = origin.bare / "refs" / "septet" / "forge.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(ForgeUnavailableError) as busy:
        replace(forge, tries=3).add_issue("First")
    assert busy.value.retryable


@pytest.mark.parametrize("given", ["checkout", "checkout/linked", "without suffix"])
def test_the_repository_is_found_as_git_finds_it(origin: Origin, tmp_path: Path, given: str) -> None:
    """A checkout, a linked worktree and a path without `.git` lead to their repository."""
    linked = tmp_path / "linked"
    git(origin.checkout, "worktree", "add", "-q", str(linked), "-b", "other")
    path = {
        "checkout": origin.checkout,
        "checkout/linked": linked,
        "without suffix": origin.bare.with_name("foo.js"),
    }[given]

    forge = LocalForge(path, git_env(tmp_path / "home"))

    assert f"{path.as_uri()}/issue/1" == forge.add_issue("First").url
    assert forge.issue(1).title == "First"


def present_state(forge: LocalForge, number: int, commit: str = "") -> str:
    """Return a pull request's state, which a read and a poll report alike."""
    polled = PullRequestPolls(first_seconds=0).state("it", forge, number, commit)
    assert forge.pull_request(number, commit).state == polled
    return polled


def test_a_pull_request_is_merged_when_its_base_holds_it(forge: LocalForge, origin: Origin) -> None:
    """A pull request counts as merged when its base contains it, even without its branch."""
    opened = forge.open_pull_request(NEW)
    commit = origin.sha("feat-1")
    assert present_state(forge, opened.number, commit) == "open"

    git(origin.checkout, "checkout", "-q", "main")
    git(origin.checkout, "merge", "-q", "--no-ff", "feat-1", "-m", "merge")
    git(origin.checkout, "push", "-q", "origin", "main")
    assert present_state(forge, opened.number) == "merged"

    git(origin.checkout, "push", "-q", "origin", "--delete", "feat-1")
    assert present_state(forge, opened.number, commit) == "merged"


def test_a_pull_request_without_its_branch_is_closed(forge: LocalForge, origin: Origin) -> None:
    """A pull request whose branch was deleted without a merge counts as closed, as on other forges."""
    opened = forge.open_pull_request(NEW)
    commit = origin.sha("feat-1")
    git(origin.bare, "branch", "-D", "feat-1")

    assert present_state(forge, opened.number, commit) == "closed"
    assert present_state(forge, opened.number) == "closed"


def test_a_poll_of_many_pull_requests_runs_git_once(forge: LocalForge, origin: Origin, tmp_path: Path) -> None:
    """Without a change, one git process reads the states of all pull requests."""
    for number in (2, 3, 4):
        origin.push({f"file-{number}": "1"}, branch=f"feat-{number}")
        forge.open_pull_request(replace(NEW, head=f"feat-{number}"))
    polls, runs = PullRequestPolls(first_seconds=0), tmp_path / "runs"
    traced = replace(forge, env={**forge.env, "GIT_TRACE2": str(runs)})
    assert polls.state("it", traced, 1) == "open"
    runs.unlink()
    assert polls.state("it", traced, 1) == "open"
    polls.first_seconds = 60
    assert [polls.state("it", traced, number) for number in (2, 3)] == ["open"] * 2
    assert runs.read_text(encoding="utf-8").count("start ") == 1


def test_a_person_merges_a_pull_request(forge: LocalForge, origin: Origin) -> None:
    """After a merge the base contains both sides, the pull request is merged, and a second merge is refused."""
    opened, polls = forge.open_pull_request(NEW), PullRequestPolls(first_seconds=0)
    git(origin.checkout, "checkout", "-q", "main")
    base = origin.push({"c": "1"})
    assert polls.state("it", forge, opened.number) == "open"

    assert forge.merge_pull_request(opened.number).state == polls.state("it", forge, opened.number) == "merged"
    assert git(origin.bare, "rev-list", "--parents", "-1", "main").split()[1:] == [base, origin.sha("feat-1")]
    assert git(origin.bare, "show", "main:b") == git(origin.bare, "show", "main:c") == "1"
    with pytest.raises(RefusedTransitionError, match="is merged"):
        forge.merge_pull_request(opened.number)


@pytest.fixture
def here(origin: Origin, tmp_path: Path) -> LocalForge:
    """Return the forge of a checkout of the base branch, with an open pull request."""
    git(origin.checkout, "checkout", "-q", "main")
    forge = LocalForge(origin.checkout, git_env(tmp_path / "home"))
    forge.open_pull_request(NEW)
    return forge


def commit_here(checkout: Path, name: str, text: str) -> None:
    """Commit a file on the current branch."""
    (checkout / name).write_text(text, encoding="utf-8")
    git(checkout, "add", name)
    git(checkout, "commit", "-qm", f"change {name}")


def test_no_program_of_a_checkout_runs(here: LocalForge, tmp_path: Path) -> None:
    """A merge starts neither a hook nor a filesystem monitor."""
    ran = tmp_path / "ran"
    program = here.path / ".git" / "hooks" / "post-merge"
    for path in (program, program.with_name("post-checkout"), program.with_name("reference-transaction")):
        write_program(path, f"#!/bin/sh\ntouch {ran}\n")
    git(here.path, "config", "core.fsmonitor", str(program))
    ran.unlink(missing_ok=True)

    assert here.merge_pull_request(1).state == "merged"
    assert not ran.exists()


def test_a_merge_updates_a_linked_worktree_of_the_base(here: LocalForge, tmp_path: Path) -> None:
    """A linked worktree with the base checked out has the merge, and no change that would take the merge back."""
    git(here.path, "checkout", "-q", "--detach")
    git(here.path, "worktree", "add", "-q", str(tmp_path / "linked"), "main")

    assert here.merge_pull_request(1).state == "merged"

    assert (tmp_path / "linked" / "b").exists()
    assert git(tmp_path / "linked", "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "what", ["conflict", "uncommitted", "staged", "in the way", "filter", "encoding", "merge"]
)
def test_what_a_person_has_to_merge_is_left_as_it_is(here: LocalForge, what: str) -> None:
    """The error names the obstacle, the remedy is a command, and neither branch nor files change."""
    checkout, named = here.path, "b"
    if what == "conflict":
        commit_here(checkout, "b", "2")
    elif what == "uncommitted":
        named = "a"
        (checkout / "a").write_text("mine", encoding="utf-8")
    elif what == "staged":
        named = "new"
        (checkout / "new").write_text("mine", encoding="utf-8")
        git(checkout, "add", "new")
    elif what == "in the way":
        (checkout / "b").write_text("mine", encoding="utf-8")
    elif what == "merge":
        named = "in progress"
        (checkout / ".git" / "MERGE_HEAD").write_text(git(checkout, "rev-parse", "feat-1"), encoding="utf-8")
    else:
        value = "filter=lfs" if what == "filter" else "working-tree-encoding=UTF-16"
        commit_here(checkout, ".gitattributes", f"b {value}\n")
    before = git(checkout, "rev-parse", "main"), git(checkout, "status", "--porcelain")

    with pytest.raises(RefusedTransitionError, match=named) as refused:
        here.merge_pull_request(1)

    helps = {"merge": "Finish it", **dict.fromkeys(("uncommitted", "staged"), f"git -C {checkout} stash")}
    assert helps.get(what, f"git -C {checkout} merge feat-1") in refused.value.remedy.replace("'", "")
    assert (git(checkout, "rev-parse", "main"), git(checkout, "status", "--porcelain")) == before
    assert str(here.find_obstacle(1)) == str(refused.value)
    assert here.pull_request(1).state == "open"


def test_a_merge_closes_the_issues_that_its_text_names(forge: LocalForge) -> None:
    """A merge closes the existing issues that its text names with `Closes` or `Fixes`, and no other issue."""
    for title in ("First", "Second"):
        forge.add_issue(title)
    forge.open_pull_request(replace(NEW, body="Closes #1, see #2. Fixes #77"))

    forge.merge_pull_request(1)

    assert [issue.state for issue in forge.list_issues()] == ["closed", "open"]


def test_a_closed_pull_request_is_not_merged(forge: LocalForge) -> None:
    """A closed pull request cannot be merged, and an unknown number is not found."""
    opened = forge.open_pull_request(NEW)

    assert forge.close_pull_request(opened.number).state == "closed"
    assert forge.pull_request(opened.number).state == "closed"
    with pytest.raises(RefusedTransitionError, match="is closed"):
        forge.merge_pull_request(opened.number)
    with pytest.raises(NotFoundError, match="no pull request 7"):
        forge.pull_request(7)
