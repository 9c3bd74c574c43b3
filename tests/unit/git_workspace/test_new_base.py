"""A base that was written anew while the work went on: what was taken out of it does not go out with the work."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, git_env, make_origin

from septet.git.address import parse_address
from septet.git.branches import create_branch
from septet.git.commit import commit_all
from septet.git.destroy import RescueOptions
from septet.git.evidence import gather
from septet.git.new_base import LostBaseError, is_behind, work_on_base
from septet.git.place import Place
from septet.git.rework_tree import go_to
from septet.git.snapshots.take import seed, take
from septet.git.snapshots.vault import prepare
from septet.git.workspace import open_workspace
from septet.state import StateDir

BRANCH = "feat/x"
LIMIT = 1 << 20


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Give an origin whose last commit has a file that should not be there."""
    origin = make_origin(tmp_path / "origins")
    origin.push({"a.txt": "a\n", "b.txt": "b\n"})
    origin.push({"key.txt": "a key\n"})
    return origin


@pytest.fixture
def place(tmp_path: Path, origin: Origin) -> Place:
    """Give a workspace whose branch has the work: a changed file, a new one."""
    state = StateDir(tmp_path / "state")
    state.prepare()
    env = git_env(tmp_path / "home")
    place = open_workspace(state, parse_address(str(origin.bare)), "wo-1", first_run_id="r", env=env)
    prepare(place)
    seed(place, ignored_limit_bytes=LIMIT)
    create_branch(place, BRANCH)
    (place.worktree / "a.txt").write_text("work\n")
    (place.worktree / "new.txt").write_text("new\n")
    commit_all(place, "feat: x\n\nWith words.")
    return place


def _erase(origin: Origin, **files: str) -> str:
    """Take the last commit out of the base, and put another one in its place; return that."""
    git(origin.checkout, "reset", "-q", "--hard", "HEAD~1")
    for name, text in files.items():
        (origin.checkout / f"{name}.txt").write_text(text)
    git(origin.checkout, "add", "-A")
    git(origin.checkout, "commit", "-q", "--allow-empty", "-m", "others")
    git(origin.checkout, "push", "-q", "--force", "origin", "HEAD:main")
    return git(origin.checkout, "rev-parse", "HEAD")


def _head(place: Place) -> str:
    return git(place.worktree, "rev-parse", "HEAD")


def _files(place: Place, sha: str) -> list[str]:
    return git(place.worktree, "ls-tree", "-r", "--name-only", sha).splitlines()


def test_the_work_is_laid_over_a_base_that_was_written_anew(place: Place, origin: Origin) -> None:
    """One commit on the new base has what the work changed, its message, and nothing that was taken out."""
    commit, tip = _head(place), _erase(origin, b="others\n")
    work = work_on_base(place, BRANCH, commit, place.base_sha)
    assert git(place.worktree, "log", "-1", "--format=%P%n%B", work.sha).splitlines() == [
        tip,
        *("feat: x", "", "With words."),
    ]
    assert _files(place, work.sha) == ["a.txt", "b.txt", "new.txt"]
    assert [git(place.worktree, "show", f"{work.sha}:{name}.txt") for name in "ab"] == ["work", "others"]
    assert place.base_sha not in git(place.worktree, "rev-list", work.sha).split()
    assert (_head(place), is_behind(place, work)) == (commit, True)
    assert work_on_base(place, BRANCH, commit, place.base_sha) == work

    secured_by = take(place, "checkpoint", "before", ignored_limit_bytes=LIMIT)
    assert secured_by is not None
    go_to(place, BRANCH, work.sha, RescueOptions("moved", LIMIT), secured_by)
    assert gather(place).clean
    assert (_head(place), (place.worktree / "key.txt").exists(), is_behind(place, work)) == (
        work.sha,
        False,
        False,
    )
    assert work_on_base(place, BRANCH, commit, place.base_sha) == work

    again = _erase(origin, c="once more\n")
    assert work_on_base(place, BRANCH, commit, place.base_sha).base == again


def _goes_on(origin: Origin) -> None:
    origin.push({"b.txt": "others\n"})


def _is_gone(origin: Origin) -> None:
    git(origin.bare, "update-ref", "-d", "refs/heads/main")


@pytest.mark.parametrize("act", [lambda _: None, _goes_on, _is_gone], ids=["as it was", "goes on", "is gone"])
def test_work_on_a_base_that_still_holds_its_beginning_stays(
    place: Place, origin: Origin, act: Callable[[Origin], None]
) -> None:
    """A commit stays as it is where nothing was taken out of the base, and where there is none to begin from."""
    act(origin)
    work = work_on_base(place, BRANCH, _head(place), place.base_sha)
    assert (work.sha, work.base) == (_head(place), place.base_sha)


def test_work_that_does_not_fit_on_the_new_base_waits_for_a_person(place: Place, origin: Origin) -> None:
    """The message names the file, the remedy says how to go on, and the work stays as it is."""
    commit = _head(place)
    _erase(origin, a="others\n")
    with pytest.raises(LostBaseError, match=r"does not fit .* a\.txt") as raised:
        work_on_base(place, BRANCH, commit, place.base_sha)
    assert "push it to main and run `septet retry ID`" in raised.value.remedy
    assert (_head(place), gather(place).clean) == (commit, True)


def test_work_that_uses_what_was_taken_out_does_not_bring_it_back(place: Place, origin: Origin) -> None:
    """A file that the work changed and the base has no longer is a conflict, and is not put back."""
    (place.worktree / "key.txt").write_text("a key, and more\n")
    commit = commit_all(place, "more")
    _erase(origin)
    with pytest.raises(LostBaseError, match=r"key\.txt"):
        work_on_base(place, BRANCH, commit, place.base_sha)
