"""The branch of a work order: its name, its owner and its creation."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from septet.contracts.repository import is_branch_name
from septet.errors import EvidenceError, GitError
from septet.git.commits.branches import branch_refusal, branches_of, create_branch, free_name
from septet.git.engine.place import Place
from septet.git.evidence.evidence import current_head
from septet.git.worktree.dot_git import Head

NAME = "feat-issue-7-wo-1-add-a-thing"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.lists(st.sampled_from([*"a/.@{-~^:?*[\\ \x7f\x1fé", "lock", ".lock"]), min_size=1, max_size=6).map(
        "".join
    )
)
def test_what_git_takes_for_a_branch_is_known_without_asking_it(env: dict[str, str], name: str) -> None:
    """The name check agrees with `git check-ref-format`."""
    asked = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], env=env, check=False)
    assert is_branch_name(name) == (asked.returncode == 0)


def test_the_base_and_the_default_branch_are_refused(
    open_place: Callable[..., Place], origin: Origin, place: Place
) -> None:
    """A work order may use neither its base branch nor the origin's default branch."""
    origin.push({"a": "1"}, branch="release")
    other = open_place("wo-2", base="release")

    assert "starts from" in (branch_refusal(place, "main") or "")
    assert "starts from" in (branch_refusal(other, "release") or "")
    assert "starts from" in (branch_refusal(other, "main") or "")


def test_branches_are_those_of_the_fork(place: Place, origin: Origin, tmp_path: Path) -> None:
    """A work order on a fork checks the fork's branches and its default branch, and not the origin's branches."""
    fork = make_origin(tmp_path / "fork", default_branch="develop")
    git(fork.bare, "fetch", "-q", str(origin.bare), "main:develop")
    fork.push({"other.py": "x = 1\n"}, branch="taken")
    origin.push({"other.py": "x = 2\n"}, branch="there")
    forked = replace(place, fork=str(fork.bare))

    assert branch_refusal(forked, "there") is None
    assert "other commits" in (branch_refusal(forked, "taken") or "")
    assert "default branch there" in (branch_refusal(forked, "develop") or "")
    assert list(branches_of(forked, "taken")) == ["taken"]


@pytest.mark.parametrize(
    ("there", "name", "words"),
    [
        (NAME, NAME, "already has"),
        ("feat", "feat/x/y", "feat"),
        ("a/b", "a", "a/b"),
        ("feat", "feature", None),
        ("Release", "release", "Release, which differs in case alone"),
        ("Release", "release/1", "Release"),
        ("Feat/x", "feat", "Feat/x"),
        ("Feat/x", "feat/y", None),
    ],
)
def test_a_branch_of_somebody_else_is_named(
    place: Place, origin: Origin, there: str, name: str, words: str | None
) -> None:
    """The refusal names the branch in the way: `feat` blocks `feat/x`, and `Release` blocks `release`."""
    origin.push({"a": "1"}, branch=there)
    refusal = branch_refusal(place, name)
    assert refusal is None if words is None else words in (refusal or "")


def test_a_branch_that_the_agent_pushed_is_its_own(place: Place) -> None:
    """A remote branch at the worktree's HEAD counts as the work order's own push."""
    git(place.worktree, "checkout", "-q", "-b", NAME)
    git(place.worktree, "commit", "-q", "--allow-empty", "-m", "x")
    git(place.worktree, "push", "-q", "origin", NAME)

    assert branch_refusal(place, NAME) is None


def test_the_first_name_that_is_free_is_taken(place: Place, origin: Origin) -> None:
    """The first free name is chosen, and the error names the first name if no name is free."""
    origin.push({"a": "1"}, branch="septet")
    origin.push({"a": "2"}, branch="septet-bug-7-x")

    assert free_name(place, ("septet/bug-7-x", "septet-bug-7-x", "septet-bug-7-x-wo-1")) == "septet-bug-7-x-wo-1"
    with pytest.raises(EvidenceError, match="it cannot have a branch septet/bug-7-x"):
        free_name(place, ("septet/bug-7-x", "septet-bug-7-x"))


def test_branches_are_found_by_the_number_of_their_issue(place: Place, origin: Origin) -> None:
    """Branches with the issue's number in their name may belong to the work order, whatever their class."""
    for name in ("septet/bug-7-x", "septet-feat-7", "septet/bug-70-x", "fix-bug-17", "feat-wo-10-other"):
        origin.push({"a": name}, branch=name)

    assert set(branches_of(place, "wo-1", "7")) == {"septet/bug-7-x", "septet-feat-7"}
    assert branches_of(place, "wo-1") == {}


def test_it_is_made_at_head_without_touching_files_or_index(place: Place) -> None:
    """A new branch is checked out at HEAD, and files and index do not change."""
    (place.worktree / "new.py").write_text("1")
    git(place.worktree, "add", "new.py")
    index = (place.worktree / ".git" / "index").stat().st_mtime_ns
    readme = (place.worktree / "README.md").stat().st_mtime_ns

    create_branch(place, NAME)

    assert Head(NAME, place.base_sha) == current_head(place)
    assert git(place.worktree, "branch", "--show-current") == NAME
    assert git(place.worktree, "status", "--porcelain") == "A  new.py"
    assert readme == (place.worktree / "README.md").stat().st_mtime_ns
    assert index <= (place.worktree / ".git" / "index").stat().st_mtime_ns


def test_it_is_fine_when_the_agent_did_it(place: Place) -> None:
    """A branch that the agent has checked out stays, and a branch at HEAD is only checked out."""
    git(place.worktree, "checkout", "-q", "-b", NAME)
    git(place.worktree, "commit", "-q", "--allow-empty", "-m", "x")
    sha = git(place.worktree, "rev-parse", "HEAD")
    create_branch(place, NAME)
    assert Head(NAME, sha) == current_head(place)

    git(place.worktree, "checkout", "-q", "--detach")
    create_branch(place, NAME)
    assert Head(NAME, sha) == current_head(place)


def test_a_local_branch_with_other_commits_is_not_taken(place: Place) -> None:
    """A local branch with other commits of the agent is refused and does not move."""
    git(place.worktree, "checkout", "-q", "-b", NAME)
    git(place.worktree, "commit", "-q", "--allow-empty", "-m", "x")
    git(place.worktree, "checkout", "-q", "main")

    with pytest.raises(EvidenceError, match="other commits"):
        create_branch(place, NAME)

    assert current_head(place).branch == "main"


def test_a_branch_folder_in_the_way_is_an_error(place: Place) -> None:
    """A local branch `feat` makes `feat/x` impossible, and HEAD does not move."""
    git(place.worktree, "branch", "feat")

    with pytest.raises(GitError):
        create_branch(place, "feat/x")

    assert current_head(place).branch == "main"


def test_locks_of_a_killed_git_do_not_hold_it_up(place: Place) -> None:
    """The lock file of a killed git does not stop the creation of a branch."""
    (place.worktree / ".git" / "HEAD.lock").touch()

    create_branch(place, NAME)

    assert current_head(place).branch == NAME
