"""A commit of few objects with more files than any disk holds."""

import subprocess
from dataclasses import replace

import pytest

from septet.errors import WorkspaceError
from septet.git.commits.commit import commit_all
from septet.git.engine.place import Place
from septet.git.worktree.view import hold_head

DEEP, WIDE = 9, 10


def git(place: Place, *args: str, stdin: str = "") -> str:
    """Run git as the agent does, and return its output."""
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
    done = subprocess.run(command, cwd=place.worktree, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("leaf", ["blob", "tree"])
@pytest.mark.timeout(60)
def test_a_tree_that_unfolds_without_end_is_refused_by_the_name_of_its_limit(place: Place, leaf: str) -> None:
    """A thousand million files or empty folders in ten objects are refused at the limit of entries."""
    if leaf == "blob":
        sha, mode = git(place, "hash-object", "-w", "--stdin", stdin="x"), "100644"
    else:
        sha, mode = git(place, "mktree", stdin=""), "040000"
    kind = leaf
    for _ in range(DEEP):
        sha = git(place, "mktree", stdin="".join(f"{mode} {kind} {sha}\t{name}\n" for name in range(WIDE)))
        mode, kind = "040000", "tree"
    git(place, "update-ref", "HEAD", git(place, "commit-tree", sha, "-m", "bomb"))
    with pytest.raises(WorkspaceError, match="tree limit of 1000000 entries reached"):
        hold_head(place)


@pytest.mark.timeout(60)
def test_a_commit_that_unfolds_to_too_many_bytes_is_refused_by_the_name_of_its_limit(place: Place) -> None:
    """A large file that appears ten thousand times is refused at the limit of bytes; a setting moves the limit."""
    (place.worktree / "large.bin").write_bytes(b"0" * 2_000_000)
    sha, mode, kind = git(place, "hash-object", "-w", "large.bin"), "100644", "blob"
    for _ in range(4):
        sha = git(place, "mktree", stdin="".join(f"{mode} {kind} {sha}\t{name}\n" for name in range(WIDE)))
        mode, kind = "040000", "tree"
    git(place, "update-ref", "HEAD", git(place, "commit-tree", sha, "-m", "bomb"))
    with pytest.raises(WorkspaceError, match=r"tree limit of 10240 MiB reached.*SEPTET_TREE_LIMIT_MIB"):
        hold_head(replace(place, tree_limit_bytes=10 << 30))
    assert hold_head(replace(place, tree_limit_bytes=20 << 30)).sha == git(place, "rev-parse", "HEAD")


def test_a_commit_of_the_usual_size_is_held(place: Place) -> None:
    """A commit of a usual size is accepted."""
    (place.worktree / "new.txt").write_text("new", encoding="utf-8")
    commit_all(place, "new")
    git(place, "commit", "--allow-empty", "-m", "another")
    assert hold_head(place).sha == git(place, "rev-parse", "HEAD")
