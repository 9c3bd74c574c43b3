"""The worktree of a round: others' pushes stay, and so do the commits of the worktree."""

from dataclasses import replace

import pytest
from fakes.repositories import Origin, git
from fakes.snapshots import begin

from septet.errors import EvidenceError, GitError
from septet.git.commits.branches import create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.push import push
from septet.git.commits.rework_tree import fetch_tips, go_forward, is_clean, lay_merge, merge_trees, unresolved
from septet.git.engine.place import Place
from septet.git.snapshots.take import take
from septet.git.vault.facts import Snapshot, SnapshotOptions
from septet.git.vault.vault import list_snapshots, vault_at
from septet.git.worktree.dot_git import read_head

pytestmark = pytest.mark.law

BRANCH = "feat/wo-1"
OPTIONS = SnapshotOptions("a round begins", 1_000_000, "rework")


def write(place: Place, path: str, content: str) -> None:
    (place.worktree / path).write_text(content, encoding="utf-8")


def read(place: Place, path: str) -> str:
    return (place.worktree / path).read_text(encoding="utf-8")


@pytest.fixture
def pushed(place: Place) -> str:
    begin(place)
    create_branch(place, BRANCH)
    write(place, "new.py", "x = 1\n")
    return push(place, BRANCH, commit_all(place, "work"))


def push_of_another(origin: Origin, files: dict[str, str], branch: str = "main") -> str:
    """Push a commit on the present branch as another person, and return the commit."""
    clone = origin.bare.with_name(f"clone-{len(list(origin.bare.parent.iterdir()))}")
    git(origin.bare.parent, "clone", "-q", "-b", branch, str(origin.bare), str(clone))
    for path, content in files.items():
        (clone / path).write_text(content, encoding="utf-8")
    git(clone, "add", "-A", "-f")
    git(clone, "commit", "-q", "-m", "theirs")
    git(clone, "push", "-q", "origin", "HEAD")
    return git(clone, "rev-parse", "HEAD")


def kept(place: Place) -> Snapshot:
    taken = take(place, "checkpoint", SnapshotOptions("test", 1_000_000))
    return taken or list_snapshots(vault_at(place), place.order_id)[-1]


def forward(place: Place) -> str:
    """Bring the worktree to the tip of the branch, and return the commit that still needs a merge."""
    tips = fetch_tips(place, BRANCH, None)
    assert tips is not None
    return go_forward(place, BRANCH, tips.head, replace(OPTIONS, equal_to=kept(place)))


def test_the_push_of_another_is_gone_forward_to(place: Place, origin: Origin, pushed: str) -> None:
    """The worktree, its branch and its index move to another person's push, and nothing is left to commit."""
    theirs = push_of_another(origin, {"theirs.py": "y = 2\n"}, branch=BRANCH)
    assert forward(place) == ""
    head = read_head(place.worktree / ".git")
    assert (head.branch, head.sha) == (BRANCH, theirs)
    assert (read(place, "theirs.py"), read(place, "new.py")) == ("y = 2\n", "x = 1\n")
    assert is_clean(place)
    assert git(place.worktree, "status", "--porcelain") == ""
    assert forward(place) == ""


def test_commits_that_were_not_pushed_are_merged_with_those_of_others(
    place: Place, origin: Origin, pushed: str
) -> None:
    """The commit of a merge has the worktree's commit and the other person's commit as its parents."""
    write(place, "mine.py", "z = 3\n")
    mine = commit_all(place, "mine")
    theirs = push_of_another(origin, {"theirs.py": "y = 2\n"}, branch=BRANCH)
    assert forward(place) == theirs
    merge = merge_trees(place, theirs)
    assert merge.conflicts == ()
    lay_merge(place, merge, replace(OPTIONS, equal_to=kept(place)))
    sha = commit_all(place, "both", merges=theirs)
    assert git(place.worktree, "rev-list", "--parents", "-n1", sha).split() == [sha, mine, theirs]
    assert push(place, BRANCH, sha, expected_tip=theirs) == origin.sha(BRANCH) == sha
    assert (read(place, "theirs.py"), read(place, "mine.py")) == ("y = 2\n", "z = 3\n")


def test_a_branch_that_others_wrote_anew_is_taken_as_it_is(place: Place, origin: Origin, pushed: str) -> None:
    """Files that another person removed from the branch by a rewrite stay removed."""
    git(origin.bare, "update-ref", f"refs/heads/{BRANCH}", origin.sha("main"))
    theirs = push_of_another(origin, {"theirs.py": "y = 2\n"}, branch=BRANCH)
    assert forward(place) == ""
    assert read_head(place.worktree / ".git").sha == theirs
    assert not (place.worktree / "new.py").exists()


def test_a_conflict_is_laid_with_its_markers_and_committed_with_both_parents(
    place: Place, origin: Origin, pushed: str
) -> None:
    """A conflict is written with its markers, and its resolution is committed with both parents."""
    base = push_of_another(origin, {"new.py": "x = 'theirs'\n"})
    assert forward(place) == ""
    tips = fetch_tips(place, BRANCH, None)
    assert tips is not None
    assert tips.base == base
    merge = merge_trees(place, base)
    assert merge.conflicts == ("new.py",)
    lay_merge(place, merge, replace(OPTIONS, equal_to=kept(place)))
    assert unresolved(place, ("new.py",)) == ("new.py",)
    assert read_head(place.worktree / ".git").sha == pushed
    write(place, "new.py", "x = 'both'\n")
    assert unresolved(place, ("new.py",)) == ()
    sha = commit_all(place, "resolved", merges=base)
    assert git(place.worktree, "rev-list", "--parents", "-n1", sha).split() == [sha, pushed, base]
    assert is_clean(place)


def test_a_merge_is_committed_also_where_it_changes_nothing(place: Place, origin: Origin, pushed: str) -> None:
    """A merge that keeps our side is still committed; otherwise the forge would report the conflict again."""
    base = push_of_another(origin, {"new.py": "x = 'theirs'\n"})
    fetch_tips(place, BRANCH, None)
    lay_merge(place, merge_trees(place, base), replace(OPTIONS, equal_to=kept(place)))
    write(place, "new.py", "x = 1\n")
    sha = commit_all(place, "ours", merges=base)
    assert git(place.worktree, "rev-list", "--parents", "-n1", sha).split() == [sha, pushed, base]


def test_a_file_that_git_ignores_is_merged_all_the_same(place: Place, origin: Origin, pushed: str) -> None:
    """The commit of a merge contains a file of the base that git ignores."""
    base = push_of_another(origin, {"new.py": "x = 'theirs'\n", ".gitignore": "*.log\n", "kept.log": "kept\n"})
    fetch_tips(place, BRANCH, None)
    lay_merge(place, merge_trees(place, base), replace(OPTIONS, equal_to=kept(place)))
    write(place, "new.py", "x = 'both'\n")
    sha = commit_all(place, "resolved", merges=base)
    assert git(place.worktree, "show", f"{sha}:kept.log") == "kept"


def test_of_a_merge_that_fails_known_words_are_told(place: Place) -> None:
    """The error of a failed merge has git's known words, and no quoted words."""
    with pytest.raises(GitError, match=r"/wo-1: not something we can merge$"):
        merge_trees(place, "1" * 40)


def test_a_branch_that_is_gone_is_told(place: Place, origin: Origin, pushed: str) -> None:
    """A deleted branch has no tips."""
    git(origin.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
    assert fetch_tips(place, BRANCH, None) is None


def test_nothing_that_is_there_is_overwritten(place: Place, origin: Origin, pushed: str) -> None:
    """A move is refused if an uncommitted file is in the way, and the worktree does not change."""
    theirs = push_of_another(origin, {"theirs.py": "y = 2\n"}, branch=BRANCH)
    write(place, "theirs.py", "mine\n")
    fetch_tips(place, BRANCH, None)
    with pytest.raises(GitError):
        go_forward(place, BRANCH, theirs, replace(OPTIONS, equal_to=kept(place)))
    assert read(place, "theirs.py") == "mine\n"
    assert read_head(place.worktree / ".git").sha == pushed


def test_another_branch_is_not_moved(place: Place, origin: Origin, pushed: str) -> None:
    """A worktree on another branch is refused."""
    theirs = push_of_another(origin, {"theirs.py": "y = 2\n"}, branch=BRANCH)
    fetch_tips(place, BRANCH, None)
    git(place.worktree, "checkout", "-q", "-b", "elsewhere")
    with pytest.raises(EvidenceError, match="the work belongs on feat/wo-1"):
        go_forward(place, BRANCH, theirs, replace(OPTIONS, equal_to=kept(place)))
