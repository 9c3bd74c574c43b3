"""A base branch that was rewritten during the work: the removed content does not leave with the work."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin
from fakes.snapshots import begin, snapshot_of

from septet.git.commits.branches import create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.new_base import (
    BranchWork,
    LostBaseError,
    UnfitWorkError,
    is_behind,
    lay_on_base,
    refuse_erased_base,
    unfit_files,
    work_on_base,
)
from septet.git.commits.push import remote_tips
from septet.git.commits.rework_tree import go_to
from septet.git.engine.place import Place
from septet.git.evidence.evidence import gather
from septet.git.vault.facts import SnapshotOptions

BRANCH = "feat/x"
LIMIT = 1 << 20


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return an origin whose last commit has a file that a rewrite will remove."""
    origin = make_origin(tmp_path / "origins")
    origin.push({"a.txt": "a\n", "b.txt": "b\n"})
    origin.push({"key.txt": "a key\n"})
    return origin


@pytest.fixture
def place(open_place: Callable[..., Place]) -> Place:
    """Return a workspace whose branch has a commit with a changed file and a new file."""
    place = open_place()
    begin(place)
    create_branch(place, BRANCH)
    (place.worktree / "a.txt").write_text("work\n")
    (place.worktree / "new.txt").write_text("new\n")
    commit_all(place, "feat: x\n\nWith words.")
    return place


def _erase(origin: Origin, **files: str) -> str:
    """Replace the last commit of the base with a commit that has the files, and return the new commit."""
    git(origin.checkout, "reset", "-q", "--hard", "HEAD~1")
    for name, text in files.items():
        (origin.checkout / f"{name}.txt").write_text(text)
    git(origin.checkout, "add", "-A")
    git(origin.checkout, "commit", "-q", "--allow-empty", "-m", "others")
    git(origin.checkout, "push", "-q", "--force", "origin", "HEAD:main")
    return git(origin.checkout, "rev-parse", "HEAD")


def _head(place: Place) -> str:
    return git(place.worktree, "rev-parse", "HEAD")


def _base_tip(place: Place) -> str | None:
    return remote_tips(place, BRANCH, lambda _: None)[0]


def _files(place: Place, sha: str) -> list[str]:
    return git(place.worktree, "ls-tree", "-r", "--name-only", sha).splitlines()


def test_the_work_is_laid_over_a_base_that_was_written_anew(place: Place, origin: Origin) -> None:
    """The work becomes one commit on the new base, with its message and without the removed content."""
    commit, tip = _head(place), _erase(origin, b="others\n")
    work = work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place))
    assert git(place.worktree, "log", "-1", "--format=%P%n%B", work.sha).splitlines() == [
        tip,
        *("feat: x", "", "With words."),
    ]
    assert _files(place, work.sha) == ["a.txt", "b.txt", "new.txt"]
    assert [git(place.worktree, "show", f"{work.sha}:{name}.txt") for name in "ab"] == ["work", "others"]
    assert place.base_sha not in git(place.worktree, "rev-list", work.sha).split()
    assert (_head(place), is_behind(place, work)) == (commit, True)
    assert work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place)) == work

    go_to(place, BRANCH, work.sha, SnapshotOptions("moved", LIMIT, equal_to=snapshot_of(place)))
    assert gather(place).clean
    assert (_head(place), (place.worktree / "key.txt").exists(), is_behind(place, work)) == (
        work.sha,
        False,
        False,
    )
    assert work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place)) == work

    again = _erase(origin, c="once more\n")
    assert work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place)).base == again


def _goes_on(origin: Origin) -> None:
    origin.push({"b.txt": "others\n"})


def _is_gone(origin: Origin) -> None:
    git(origin.bare, "update-ref", "-d", "refs/heads/main")


@pytest.mark.parametrize("act", [lambda _: None, _goes_on, _is_gone], ids=["as it was", "goes on", "is gone"])
def test_work_on_a_base_that_still_holds_its_beginning_stays(
    place: Place, origin: Origin, act: Callable[[Origin], None]
) -> None:
    """A commit stays unchanged if the base lost no commit, and if the base branch is gone."""
    act(origin)
    work = work_on_base(place, BranchWork(BRANCH, _head(place), place.base_sha), _base_tip(place))
    assert (work.sha, work.base) == (_head(place), place.base_sha)


def _lay(place: Place, commit: str) -> None:
    """Expect that the work does not fit on the present base, and lay it into the worktree."""
    with pytest.raises(UnfitWorkError, match=r"does not fit .* a\.txt") as raised:
        work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place))
    assert "push it to main and run `septet retry ID`" in raised.value.remedy
    lay_on_base(place, raised.value.work, SnapshotOptions("moved", LIMIT, equal_to=snapshot_of(place)))


def test_work_that_does_not_fit_on_the_new_base_is_brought_together_with_it(place: Place, origin: Origin) -> None:
    """The worktree has both sides with git's markers; an agent's result becomes the work on the new base."""
    commit, tip = _head(place), _erase(origin, a="others\n", b="others\n")
    _lay(place, commit)
    _lay(place, commit)  # a killed attempt runs again
    assert (_head(place), (place.worktree / "key.txt").exists(), unfit_files(place)) == (commit, False, ("a.txt",))
    (place.worktree / "a.txt").write_text("others and work\n")
    assert not unfit_files(place)
    together = commit_all(place, "together")

    work = work_on_base(place, BranchWork(BRANCH, together, place.base_sha), _base_tip(place))
    assert git(place.worktree, "log", "-1", "--format=%P %s", work.sha) == f"{tip} feat: x"
    texts = [git(place.worktree, "show", f"{work.sha}:{name}.txt") for name in ("a", "b", "new")]
    assert texts == ["others and work", "others", "new"]
    assert "key.txt" not in _files(place, work.sha)
    assert work.was_checked
    assert is_behind(place, work)
    assert work_on_base(place, BranchWork(BRANCH, together, place.base_sha), _base_tip(place)) == work


TOGETHER = "others and work\n"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, r"a\.txt still holds the markers"),
        ({"a.txt": "a\nwork\n"}, r"a\.txt holds 1 lines that were taken out"),
        ({"a.txt": TOGETHER, "b.txt": "b\n"}, r"changed in b\.txt is not in the work"),
        ({"a.txt": TOGETHER, "key.txt": "a key\n"}, r"changed in key\.txt is not in the work"),
    ],
)
def test_what_was_not_brought_together_is_not_pushed(
    place: Place, origin: Origin, files: dict[str, str], why: str
) -> None:
    """Work with markers, with removed content or without the others' changes is not pushed."""
    commit = _head(place)
    _erase(origin, a="others\n", b="others\n")
    _lay(place, commit)
    for name, text in files.items():
        (place.worktree / name).write_text(text)
    together = commit_all(place, "together")
    with pytest.raises(LostBaseError, match=why):
        work_on_base(place, BranchWork(BRANCH, together, place.base_sha), _base_tip(place))
    git(origin.checkout, "push", "-q", "--force", "origin", f"{place.base_sha}:main")
    assert work_on_base(place, BranchWork(BRANCH, together, place.base_sha), _base_tip(place)).sha == together, (
        "the base has it again"
    )


def test_work_that_is_done_anew_is_not_taken_for_what_was_brought_together(place: Place, origin: Origin) -> None:
    """Work that was done again after a return to an earlier step is laid over the base as any work."""
    commit = _head(place)
    _erase(origin, a="others\n")
    _lay(place, commit)
    git(place.worktree, "reset", "-q", "--hard", place.base_sha)
    (place.worktree / "new.txt").write_text("another\n")
    anew = commit_all(place, "feat: x")
    assert not unfit_files(place)
    work = work_on_base(place, BranchWork(BRANCH, anew, place.base_sha), _base_tip(place))
    assert (work.was_checked, git(place.worktree, "show", f"{work.sha}:a.txt")) == (False, "others")


def test_a_branch_that_holds_what_was_erased_is_told(place: Place, origin: Origin) -> None:
    """A branch is refused if its beginning or a merged commit is no longer part of the base."""
    commit, began, merged = _head(place), place.base_sha, origin.push({"b.txt": "others\n"})
    git(place.worktree, "fetch", "-q", str(origin.bare), "main")
    refuse_erased_base(place, commit, merged)
    git(place.worktree, "merge", "-q", "--no-edit", merged)
    refuse_erased_base(place, _head(place), merged)
    git(origin.checkout, "fetch", "-q", "origin")
    git(origin.checkout, "reset", "-q", "--hard", began)
    git(origin.checkout, "push", "-q", "--force", "origin", "HEAD:main")
    refuse_erased_base(place, commit, began)
    with pytest.raises(LostBaseError, match=f"no longer holds {merged[:12]}.*git rebase --onto origin/main"):
        refuse_erased_base(place, _head(place), began)


def test_work_that_uses_what_was_taken_out_does_not_bring_it_back(place: Place, origin: Origin) -> None:
    """A file that the work changed and the base lost is a conflict, and does not return."""
    (place.worktree / "key.txt").write_text("a key, and more\n")
    commit = commit_all(place, "more")
    _erase(origin)
    with pytest.raises(LostBaseError, match=r"key\.txt"):
        work_on_base(place, BranchWork(BRANCH, commit, place.base_sha), _base_tip(place))
