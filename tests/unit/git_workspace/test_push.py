"""The push of the engine."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault
from fakes.repositories import Origin, git, make_origin
from fakes.shell_programs import write_program

from septet.errors import GitError, InvalidInputError, NotFoundError, RemoteFullError
from septet.git.commits.branches import branch_refusal, create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.push import push, remote_tips
from septet.git.engine.address import parse_address
from septet.git.engine.place import Place
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.state import StateDir

pytestmark = pytest.mark.law

BRANCH = "feat/wo-1"


@pytest.fixture
def commit(place: Place) -> Callable[[], str]:
    def commit_it() -> str:
        create_branch(place, BRANCH)
        path = place.worktree / "new.py"
        path.write_text((path.read_text() if path.exists() else "") + "x = 1\n")
        return commit_all(place, "work")

    return commit_it


@pytest.mark.parametrize(
    "fault", [Fault("drop", after=True), Fault(status=500, after=True)], ids=["dropped", "500"]
)
def test_a_push_whose_answer_is_lost_is_looked_up(
    tmp_path: Path, state: StateDir, env: dict[str, str], fault: Fault
) -> None:
    """A push without an answer succeeds if the origin has the commit."""
    origin = make_origin(tmp_path / "hosted" / "o", "foo.js.git")
    origin.push({"app.py": "x = 1\n"})
    with serving_forge(GitHubFake(repositories=tmp_path / "hosted")) as forge:
        address = parse_address(f"{forge.url}/o/foo.js.git")
        place = open_workspace(state, address, OrderStart("wo-1", "r"), env=env, token=forge.token)
        create_branch(place, BRANCH)
        (place.worktree / "new.py").write_text("y = 2\n")
        sha = commit_all(place, "work")
        forge.faults.append(replace(fault))

        assert sha == push(place, BRANCH, sha, token=forge.token) == origin.sha(BRANCH)
        assert len(forge.seen_faults) == 1


def test_a_fork_and_its_origin_get_one_request_each_with_the_key_for_its_address(
    place: Place, origin: Origin, tmp_path: Path
) -> None:
    """The base branch is read from the origin and the work's branch from the fork; without a fork both in one."""
    fork = make_origin(tmp_path / "fork", "r.git")
    theirs, own = origin.push({"a": "1"}, branch="main"), fork.push({"b": "1"}, branch=BRANCH)
    asked = list[str]()
    forked = replace(place, fork=str(fork.bare))

    assert remote_tips(forked, BRANCH, asked.append) == (theirs, own)
    assert asked == [place.origin, forked.fork]
    assert remote_tips(place, BRANCH, asked.append) == (theirs, None)
    assert asked[2:] == [place.origin]


def test_somebody_elses_branch_is_never_overwritten(
    place: Place, origin: Origin, commit: Callable[[], str]
) -> None:
    """A push does not overwrite a branch that has an unexpected commit."""
    theirs = origin.push({"theirs": "1"}, branch=BRANCH)
    sha = commit()

    for expected in (None, theirs, place.base_sha, "1" * 40):
        with pytest.raises(GitError, match=BRANCH) as refused:
            push(place, BRANCH, sha, expected_tip=expected)
        assert "delete the branch on the forge, then run `septet retry ID`" in refused.value.remedy

    assert theirs == origin.sha(BRANCH)


def test_work_that_begins_again_replaces_its_own_push(
    place: Place, origin: Origin, commit: Callable[[], str]
) -> None:
    """After a return to an earlier step new commits replace the commits that the work order pushed itself."""
    first = push(place, BRANCH, commit())
    git(place.worktree, "reset", "--hard", place.base_sha)
    (place.worktree / "other.py").write_text("y = 2\n")
    second = commit()

    assert branch_refusal(place, BRANCH) is None
    assert second == push(place, BRANCH, second, expected_tip=first)
    assert second == origin.sha(BRANCH)


def test_a_branch_that_vanished_is_not_made_again(place: Place, origin: Origin, commit: Callable[[], str]) -> None:
    """A push to a branch that was deleted on the remote is refused."""
    first = push(place, BRANCH, commit())
    git(origin.bare, "branch", "-D", BRANCH)

    with pytest.raises(GitError, match="rejected"):
        push(place, BRANCH, commit(), expected_tip=first)


def test_the_base_is_never_pushed_to(place: Place, origin: Origin, commit: Callable[[], str]) -> None:
    """A push to the base branch is refused before git runs."""
    with pytest.raises(InvalidInputError, match="never pushes to"):
        push(place, "main", commit())

    assert place.base_sha == origin.sha("main")


@pytest.mark.parametrize(
    ("hook", "remedy"),
    [
        ("echo 'GH006: Protected branch update failed' >&2; exit 1", f"push to {BRANCH}"),
        ("echo 'refusing to allow an OAuth App to update workflow' >&2; exit 1", "workflows"),
        ("echo 'GH013: Repository rule violations found' >&2; exit 1", "rule"),
        ("echo 'GitLab: Commit message must contain a DCO signoff' >&2; exit 1", "SEPTET_SIGN_OFF=true"),
        ("echo '- Commits must have verified signatures.' >&2; exit 1", "SEPTET_SIGN_COMMITS"),
        ("echo 'GH013:  - Push cannot contain secrets' >&2; exit 1", "--from implement_plan --feedback"),
        ("echo 'GH001: Large files detected.' >&2; exit 1", "--from implement_plan --feedback"),
        ("echo 'no' >&2; exit 1", "rule"),
    ],
)
def test_what_the_remote_says_is_told(
    place: Place, origin: Origin, commit: Callable[[], str], hook: str, remedy: str
) -> None:
    """A refusal of the remote causes an error with the remedy for the remote's words, without escape sequences."""
    update = origin.bare / "hooks" / "update"
    write_program(update, f"#!/bin/sh\nprintf '\\033[31m' >&2\n{hook}\n")

    with pytest.raises(GitError, match="rejected") as refused:
        push(place, BRANCH, commit())

    assert remedy in refused.value.remedy
    assert "\x1b" not in refused.value.message


def test_a_remote_without_room_is_waited_for(place: Place, origin: Origin, commit: Callable[[], str]) -> None:
    """A push to a full remote fails with an error to retry, and succeeds after there is room."""
    hook = origin.bare / "hooks" / "pre-receive"
    write_program(hook, "#!/bin/sh\necho 'fatal: write error: No space left on device' >&2\nexit 1\n")
    sha = commit()
    with pytest.raises(RemoteFullError) as refused:
        push(place, BRANCH, sha)
    assert refused.value.retryable
    hook.unlink()
    assert sha == push(place, BRANCH, sha)


def test_a_branch_that_is_checked_out_there_is_refused(
    origin: Origin, state: StateDir, env: dict[str, str]
) -> None:
    """A push to the branch that a person's checkout has checked out is refused, and the remedy says so."""
    address = parse_address(str(origin.checkout))
    place = open_workspace(state, address, OrderStart("wo-5", "r"), env=env)
    create_branch(place, "feat-5")
    (place.worktree / "new.py").write_text("1")
    first = push(place, "feat-5", commit_all(place, "work"))
    git(origin.checkout, "checkout", "-q", "feat-5")
    (place.worktree / "new.py").write_text("2")

    with pytest.raises(GitError) as refused:
        push(place, "feat-5", commit_all(place, "more"), expected_tip=first)

    assert "checked out" in refused.value.remedy


def test_an_origin_that_is_gone_is_not_found(place: Place, origin: Origin, commit: Callable[[], str]) -> None:
    """The error for an origin that was moved away names the origin."""
    sha = commit()
    origin.bare.rename(origin.bare.with_name("moved"))

    with pytest.raises(NotFoundError, match=r"repo\.git"):
        push(place, BRANCH, sha)


def test_pushed_commits_are_whole(place: Place, origin: Origin, commit: Callable[[], str]) -> None:
    """The remote has all objects of the commit, although the workspace borrows most of them."""
    push(place, BRANCH, commit())

    subprocess.run(["git", "-C", str(origin.bare), "fsck", "--strict", "--full"], check=True, capture_output=True)
